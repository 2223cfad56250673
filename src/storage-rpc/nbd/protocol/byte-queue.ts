/**
 * Bytes that arrived in pieces, taken in protocol lengths. Only data that straddles pieces is copied; the rest are
 * views.
 */
export class ByteQueue {
  readonly #allocate: (bytes: number) => Uint8Array;
  #pieces: Uint8Array[] = [];
  #taken = 0;
  #length = 0;

  constructor(allocate: (bytes: number) => Uint8Array = Buffer.allocUnsafe) {
    this.#allocate = allocate;
  }

  get length(): number {
    return this.#length;
  }

  push(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.#length += piece.length;
  }

  take(count: number): Uint8Array | undefined {
    if (count > this.#length) return undefined;
    if (count === 0) return new Uint8Array(0);
    const [first] = this.#pieces;
    const begin = this.#taken;
    if (begin + count <= first.length) {
      this.#length -= count;
      this.#advance(count);
      return first.subarray(begin, begin + count);
    }
    const whole = this.#allocate(count);
    this.moveTo(whole, 0);
    return whole;
  }

  peek(count: number): Uint8Array | undefined {
    return count > this.#length ? undefined : this.#copy(count);
  }

  moveTo(into: Uint8Array, at: number): number {
    const count = Math.min(into.length - at, this.#length);
    for (let moved = 0; moved < count; ) {
      const part = this.#pieces[0].subarray(this.#taken, this.#taken + count - moved);
      into.set(part, at + moved);
      moved += part.length;
      this.#advance(part.length);
    }
    this.#length -= count;
    return count;
  }

  skip(count: number): number {
    const dropped = Math.min(count, this.#length);
    this.#length -= dropped;
    this.#drop(dropped);
    return dropped;
  }

  #copy(count: number): Uint8Array {
    const bytes = new Uint8Array(count);
    let from = this.#taken;
    for (let at = 0, i = 0; at < count; i++, from = 0) {
      const part = this.#pieces[i].subarray(from, from + count - at);
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  }

  #drop(count: number): void {
    for (let left = count; left > 0; ) {
      const step = Math.min(left, this.#pieces[0].length - this.#taken);
      this.#advance(step);
      left -= step;
    }
  }

  #advance(count: number): void {
    this.#taken += count;
    if (this.#taken < this.#pieces[0].length) return;
    this.#pieces.shift();
    this.#taken = 0;
  }
}
