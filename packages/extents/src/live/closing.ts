/** Closes resources in reverse order of opening (AsyncDisposableStack, which Node 20 lacks). */

export class Closing {
  readonly #closers: Array<() => unknown> = [];

  defer(close: () => unknown): void {
    this.#closers.push(close);
  }

  use<T extends AsyncDisposable>(resource: T): T {
    this.defer(() => resource[Symbol.asyncDispose]());
    return resource;
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await Promise.resolve(close()).catch(() => {});
  }

  async unlessFailed<T>(open: () => Promise<T>): Promise<T> {
    try {
      return await open();
    } catch (error) {
      await this.close();
      throw error;
    }
  }
}
