/**
 * Ownership as in pyverbs: a parent closes its children first, users before what they use (queue pairs before regions,
 * domains before completion queues), newest first among equals. `close` may be called again.
 */

/** An object of a device that has to be closed, by `close` or `await using`. */
export abstract class Resource implements AsyncDisposable {
  #parent: Resource | undefined;
  readonly #children = new Set<Resource>();
  #closing: Promise<void> | undefined;
  /** Children with a lower rank are closed first. */
  readonly closeRank: number = 0;

  constructor(parent: Resource | undefined) {
    this.#parent = parent;
    parent?.addChild(this);
  }

  private addChild(child: Resource): void {
    this.#children.add(child);
  }

  /** Closed, or being closed. */
  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  /**
   * Closes everything made from this object, then the object. Safe to call twice. Rejects with ERR_ROCE_BUSY while
   * something else still uses it; it keeps working then, and can be closed later.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close().catch((error: unknown) => {
      this.#closing = undefined;
      throw error;
    });
    return this.#closing;
  }

  /** The same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    for (;;) {
      const children = [...this.#children].reverse().sort((a, b) => a.closeRank - b.closeRank);
      for (const child of children) await child.close();
      try {
        await this.release();
        break;
      } catch (error) {
        if (this.#children.size === 0) throw error; // Otherwise a pending creation has finished during that.
      }
    }
    this.#parent?.disown(this);
  }

  /** Belongs to `parent` from now on. @internal */
  protected moveTo(parent: Resource): void {
    this.#parent?.disown(this);
    this.#parent = parent;
    parent.addChild(this);
  }

  private disown(child: Resource): void {
    this.#children.delete(child);
  }

  /** Gives back what the NIC holds for this object. */
  protected abstract release(): Promise<void>;
}
