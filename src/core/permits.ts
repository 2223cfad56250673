/**
 * So many units at a time, first come, first served. The pacing of READs is made of it: those outstanding on a queue pair (ORD), and the bytes that
 * all of a server have asked for, which is the one place where incast can be held down: only the receiver knows its sum.
 */
export class Permits {
  #total: number;
  #taken = 0;
  readonly #waiters: Array<{ readonly units: number; readonly go: () => void }> = [];

  constructor(total: number) {
    this.#total = total;
  }

  /** Units in use now. */
  get taken(): number {
    return this.#taken;
  }

  /** Resolves when `units` are free; more than there are in total are given alone. */
  take(units: number): Promise<void> {
    if (this.#waiters.length === 0 && this.#fits(units)) {
      this.#taken += units;
      return Promise.resolve();
    }
    return new Promise((go) => this.#waiters.push({ units, go }));
  }

  /** Gives units back; who has waited longest goes on. */
  give(units: number): void {
    this.#taken -= units;
    while (this.#waiters.length > 0 && this.#fits(this.#waiters[0].units)) {
      const { units: next, go } = this.#waiters.shift()!;
      this.#taken += next;
      go();
    }
  }

  /** Lets everybody go on who waits, now and later: there is nothing left to share. */
  freeAll(): void {
    this.#total = Number.POSITIVE_INFINITY;
    this.give(0);
  }

  #fits(units: number): boolean {
    return this.#taken === 0 || this.#taken + units <= this.#total;
  }
}
