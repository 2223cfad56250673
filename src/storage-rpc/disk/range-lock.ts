/**
 * Locks of ranges: overlapping ones wait for each other unless all only read. First come, first served, so none
 * starves.
 */

interface Claim {
  readonly begin: number;
  readonly end: number;
  readonly exclusive: boolean;
  start: (() => void) | undefined;
}

export class RangeLock {
  readonly #claims: Claim[] = [];

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

  #blocked(claim: Claim): boolean {
    for (const earlier of this.#claims) {
      if (earlier === claim) return false;
      if (!(claim.exclusive || earlier.exclusive)) continue;
      if (earlier.begin < claim.end && claim.begin < earlier.end) return true;
    }
    return false;
  }
}
