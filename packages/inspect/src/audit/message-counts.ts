const ENDS_MAX = 8192;

export class MessageCounts {
  #ends: number[] = [];
  #forgotten = 0;
  #forgottenUpTo = -1;

  get total(): number {
    return this.#forgotten + this.#ends.length;
  }

  add(position: number): void {
    this.#ends.push(position);
    if (this.#ends.length <= ENDS_MAX) return;
    const half = ENDS_MAX / 2;
    this.#forgottenUpTo = this.#ends[half - 1];
    this.#forgotten += half;
    this.#ends = this.#ends.slice(half);
  }

  moveNewest(position: number): void {
    if (this.#ends.length > 0) this.#ends[this.#ends.length - 1] = position;
  }

  /** Messages that end at or before the position; undefined where too many have been seen since. */
  upTo(position: number): number | undefined {
    if (position < this.#forgottenUpTo) return undefined;
    let low = 0;
    let high = this.#ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#ends[middle] <= position) low = middle + 1;
      else high = middle;
    }
    return this.#forgotten + low;
  }
}
