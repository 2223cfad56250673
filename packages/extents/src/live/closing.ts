/** What has been opened so far, to be closed in the opposite order. (AsyncDisposableStack, which Node 20 does not have.) */

/** Opened resources. */
export class Closing {
  readonly #closers: Array<() => unknown> = [];

  /** Adds what closes one of them. */
  defer(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** Adds a resource. */
  use<T extends AsyncDisposable>(resource: T): T {
    this.defer(() => resource[Symbol.asyncDispose]());
    return resource;
  }

  /** Closes all, the last one first. What cannot be closed does not keep the others open. Safe to call twice. */
  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await Promise.resolve(close()).catch(() => {});
  }

  /** The result of what opens them; if that fails, all are closed. */
  async unlessFailed<T>(open: () => Promise<T>): Promise<T> {
    try {
      return await open();
    } catch (error) {
      await this.close();
      throw error;
    }
  }
}
