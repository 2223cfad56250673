/**
 * A counting semaphore, first come, first served. It paces READs: those outstanding on a queue pair (ORD), and the
 * bytes that a server has requested in total, because only the receiver can limit its incast.
 */
export class Permits {
  #total: number;
  #taken = 0;
  readonly #waiters: Array<{ readonly units: number; readonly go: () => void }> = [];

  constructor(total: number) {
    this.#total = total;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Resolves when `units` are free; a request for more than the total is granted alone. */
  take(units: number): Promise<void> {
    if (this.#waiters.length === 0 && this.#fits(units)) {
      this.#taken += units;
      return Promise.resolve();
    }
    return new Promise((go) => this.#waiters.push({ units, go }));
  }

  give(units: number): void {
    this.#taken -= units;
    while (this.#waiters.length > 0 && this.#fits(this.#waiters[0].units)) {
      const { units: next, go } = this.#waiters.shift()!;
      this.#taken += next;
      go();
    }
  }

  freeAll(): void {
    this.#total = Number.POSITIVE_INFINITY;
    this.give(0);
  }

  #fits(units: number): boolean {
    return this.#taken === 0 || this.#taken + units <= this.#total;
  }
}
