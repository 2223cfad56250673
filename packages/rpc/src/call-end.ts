/** The end of a call before its method's: the caller gave up, its deadline passed, or the connection ended. Most methods never ask, so the AbortSignal is made for those that do. */

/** Whether one call has ended so, and whom that concerns. */
export class CallEnd {
  readonly #onEnd: (reason: Error) => void;
  #reason: Error | undefined;
  #controller: AbortController | undefined;
  #reject: ((reason: Error) => void) | undefined;

  /** `onEnd` is called once, first of all. */
  constructor(onEnd: (reason: Error) => void) {
    this.#onEnd = onEnd;
  }

  /** Why it has ended; undefined: it has not. */
  get reason(): Error | undefined {
    return this.#reason;
  }

  /** Of the same, for methods. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  /** Ends the call. Only the first reason counts. */
  end(reason: Error): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#onEnd(reason);
    this.#controller?.abort(reason);
    this.#reject?.(reason);
  }

  /** What `work` yields; rejects at once when the call ends, though the work may go on. Called once. */
  unlessEnded<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#reason !== undefined) reject(this.#reason);
      this.#reject = reject;
      work.then(resolve, reject);
    });
  }
}
