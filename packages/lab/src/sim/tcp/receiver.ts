/** The receiver of a TCP connection: keeps what comes out of order, and knows the next byte that it waits for (RFC 9293 §3.10.7.4). */
export class TcpReceiver {
  /** The next byte that is missing; what stands in an acknowledgement. */
  expected = 0;
  /** Ends of segments behind a gap, by their first byte. */
  readonly #kept = new Map<number, number>();

  /** A segment has come. */
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
