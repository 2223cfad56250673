/** Group commit: data written before a request for sync is covered by the next sync that begins. */
export class GroupCommit {
  readonly #sync: () => Promise<void>;
  #running: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(sync: () => Promise<void>) {
    this.#sync = sync;
  }

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
