/** What a receiver of SENDs has received so far. */

/** Counts messages, and says what the next ones are to be. */
export class Arrivals {
  /** Of all flows. */
  messages = 0;
  /** The length that every message must have now. */
  expectedBytes: number;
  readonly #waiters: Array<{ readonly messages: number; readonly resolve: () => void }> = [];

  constructor(
    /** The length that every message must have at first. */
    expectedBytes: number,
  ) {
    this.expectedBytes = expectedBytes;
  }

  /** One more message has come. */
  add(): void {
    this.messages++;
    for (const [i, { messages, resolve }] of this.#waiters.entries()) {
      if (messages !== this.messages) continue;
      resolve();
      this.#waiters.splice(i, 1);
      return;
    }
  }

  /** Resolves when so many messages have come, counted from the first one ever. */
  async reached(messages: number): Promise<void> {
    if (this.messages >= messages) return;
    await new Promise<void>((resolve) => this.#waiters.push({ messages, resolve }));
  }
}
