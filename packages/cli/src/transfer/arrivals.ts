export class MessageArrivals {
  /** Of all flows. */
  messages = 0;
  expectedBytes: number;
  readonly #waiters: Array<{ readonly messages: number; readonly resolve: () => void }> = [];

  constructor(expectedBytes: number) {
    this.expectedBytes = expectedBytes;
  }

  add(): void {
    this.messages++;
    for (const [i, { messages, resolve }] of this.#waiters.entries()) {
      if (messages !== this.messages) continue;
      resolve();
      this.#waiters.splice(i, 1);
      return;
    }
  }

  async reached(messages: number): Promise<void> {
    if (this.messages >= messages) return;
    await new Promise<void>((resolve) => this.#waiters.push({ messages, resolve }));
  }
}
