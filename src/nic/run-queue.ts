/**
 * First-in first-out list of the queue pairs that have something to send: a growing ring, nothing allocated once it is
 * large enough.
 */
export class RunQueue<T> {
  #ring: Array<T | undefined> = Array(16).fill(undefined);
  #head = 0;
  #count = 0;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  push(item: T): void {
    if (this.#count === this.#ring.length) this.#grow();
    this.#ring[(this.#head + this.#count) & (this.#ring.length - 1)] = item;
    this.#count++;
  }

  shift(): T | undefined {
    if (this.#count === 0) return undefined;
    const item = this.#ring[this.#head];
    this.#ring[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#ring.length - 1);
    this.#count--;
    return item;
  }

  #grow(): void {
    const ring = Array<T | undefined>(this.#ring.length * 2).fill(undefined);
    for (let k = 0; k < this.#count; k++) ring[k] = this.#ring[(this.#head + k) & (this.#ring.length - 1)];
    this.#ring = ring;
    this.#head = 0;
  }
}
