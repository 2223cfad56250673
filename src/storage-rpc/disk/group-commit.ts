/** One sync for all that ask while another one runs: what was written before the asking is covered by the next sync that begins. */
export class GroupCommit {
  readonly #sync: () => Promise<void>;
  #running: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(sync: () => Promise<void>) {
    this.#sync = sync;
  }

  /** Resolves when a sync that began after this call has ended. Rejects as it does. */
  commit(): Promise<void> {
    if (this.#next === undefined) {
      const begin = (): Promise<void> => {
        this.#next = undefined;
        this.#running = this.#sync();
        return this.#running;
      };
      this.#next = this.#running.then(begin, begin);
    }
    return this.#next;
  }
}
