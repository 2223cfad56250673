/** What a stream has sent and may have to retransmit: bytes that the peer has not consumed yet. */

interface Piece {
  readonly off: number;
  readonly bytes: Uint8Array;
}

export class ReplayBuffer {
  readonly #pieces: Piece[] = [];
  #endOff = 0;
  #ackedOff = 0;

  get endOff(): number {
    return this.#endOff;
  }

  get heldBytes(): number {
    return this.#endOff - this.#ackedOff;
  }

  append(bytes: Uint8Array): void {
    this.#pieces.push({ off: this.#endOff, bytes });
    this.#endOff += bytes.length;
  }

  acknowledge(off: number): void {
    if (off <= this.#ackedOff) return;
    this.#ackedOff = off;
    const firstHeld = off === this.#endOff ? this.#pieces.length : this.#indexOf(off);
    this.#pieces.splice(0, firstHeld);
  }

  reaches(off: number): boolean {
    return off >= this.#ackedOff && off <= this.#endOff;
  }

  /** What follows at `off`, as far as one piece goes; `off` is before the end, and not before what was acknowledged. */
  at(off: number): Uint8Array {
    const piece = this.#pieces[this.#indexOf(off)];
    return piece.bytes.subarray(off - piece.off);
  }

  #indexOf(off: number): number {
    let [low, high] = [0, this.#pieces.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#pieces[middle].off <= off) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}
