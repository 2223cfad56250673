/**
 * Readers and writers of ranges: ranges that overlap wait for each other unless all of them only read; others do not. Who asked first goes
 * first, so that nobody waits for ever.
 */

interface Claim {
  readonly begin: number;
  readonly end: number;
  readonly exclusive: boolean;
  /** Called when nothing earlier stands in the way; undefined once it runs. */
  start: (() => void) | undefined;
}

/** Locks of one disk. */
export class RangeLock {
  /** Running and waiting, in the order of asking. */
  readonly #claims: Claim[] = [];

  /** Does the work when `[begin, end)` is free for it; settles as the work does. */
  async run<T>(begin: number, end: number, exclusive: boolean, work: () => Promise<T>): Promise<T> {
    const claim: Claim = { begin, end, exclusive, start: undefined };
    this.#claims.push(claim);
    if (this.#blocked(claim)) {
      await new Promise<void>((resolve) => {
        claim.start = resolve;
      });
    }
    try {
      return await work();
    } finally {
      this.#claims.splice(this.#claims.indexOf(claim), 1);
      this.#startWaiting();
    }
  }

  #startWaiting(): void {
    for (const claim of this.#claims) {
      if (claim.start === undefined || this.#blocked(claim)) continue;
      claim.start();
      claim.start = undefined;
    }
  }

  /** Whether an earlier claim stands in the way. */
  #blocked(claim: Claim): boolean {
    for (const earlier of this.#claims) {
      if (earlier === claim) return false;
      if (!(claim.exclusive || earlier.exclusive)) continue;
      if (earlier.begin < claim.end && claim.begin < earlier.end) return true;
    }
    return false;
  }
}
