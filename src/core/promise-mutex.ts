/** Mutual exclusion for asynchronous work. */

/** Runs one piece of work at a time, in the order of the calls. A failure does not stop the next piece. */
export class PromiseMutex {
  #last: Promise<unknown> = Promise.resolve();
  #pending = 0;

  /** Settles as `work` does. */
  run<T>(work: () => Promise<T>): Promise<T> {
    this.#pending++;
    const done = this.#last.then(work);
    const next = () => {
      this.#pending--;
    };
    this.#last = done.then(next, next);
    return done;
  }

  /** Resolves when all work of earlier calls has settled. */
  get settled(): Promise<unknown> {
    return this.#last;
  }

  /** Whether work runs or waits. */
  get isLocked(): boolean {
    return this.#pending > 0;
  }
}
