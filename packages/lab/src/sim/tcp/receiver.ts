/**
 * The receiver of a TCP connection: stores data that arrives out of order, and tracks the next expected byte (RFC 9293
 * §3.10.7.4).
 */
export class TcpReceiver {
  expected = 0;
  readonly #kept = new Map<number, number>();

  onSegment(sequence: number, bytes: number): void {
    if (sequence > this.expected) {
      this.#kept.set(sequence, sequence + bytes);
      return;
    }
    this.expected = Math.max(this.expected, sequence + bytes);
    for (let end = this.#kept.get(this.expected); end !== undefined; end = this.#kept.get(this.expected)) {
      this.#kept.delete(this.expected);
      this.expected = end;
    }
  }
}
