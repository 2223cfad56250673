/** The AbortSignal is created on demand: most methods never use it. */

export class CallEnd {
  readonly #onEnd: (reason: Error) => void;
  #reason: Error | undefined;
  #controller: AbortController | undefined;
  #reject: ((reason: Error) => void) | undefined;

  constructor(onEnd: (reason: Error) => void) {
    this.#onEnd = onEnd;
  }

  get reason(): Error | undefined {
    return this.#reason;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  /** Only the first reason counts. */
  end(reason: Error): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#onEnd(reason);
    this.#controller?.abort(reason);
    this.#reject?.(reason);
  }

  /** The result of `work`; rejects at once when the call ends, although the work may continue. */
  unlessEnded<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#reason !== undefined) reject(this.#reason);
      this.#reject = reject;
      work.then(resolve, reject);
    });
  }
}
