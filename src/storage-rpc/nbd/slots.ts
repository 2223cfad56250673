/** A number of places that several parties share; who finds none is called when one is free, in the order of asking. */
export class Slots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Takes a place, or says that there is none. */
  tryTake(): boolean {
    if (this.#free === 0) return false;
    this.#free--;
    return true;
  }

  /** Calls once when a place may be free; asking again while waiting changes nothing. */
  whenFree(call: () => void): void {
    this.#waiting.add(call);
  }

  /** Gives one place back; who waits for one is called. */
  release(): void {
    this.#free++;
    // Who is called may have no use for the place any more.
    for (const call of this.#waiting) {
      if (this.#free === 0) return;
      this.#waiting.delete(call);
      call();
    }
  }
}
