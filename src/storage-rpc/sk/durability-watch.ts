/**
 * Notices that a store has lost what it had acknowledged and not flushed: the write verifier of NFS (RFC 1813 §3.3.21). A server says with
 * every RESUME which life of the store it speaks for; in another life, changes since the last FLUSH may be gone, and the next FLUSH must not
 * succeed. Sessions to one disk share one.
 */
export class DurabilityWatch {
  #storeId: bigint | undefined;
  /** Changes that were acknowledged, and how many of them, from the first one on, are known to be durable. */
  #changes = 0;
  #durable = 0;
  #lost = false;

  /** The server speaks for this life of the store. */
  onStore(storeId: bigint): void {
    if (this.#storeId !== undefined && storeId !== this.#storeId && this.#durable < this.#changes) this.#lost = true;
    this.#storeId = storeId;
  }

  /** A change was acknowledged that only a FLUSH makes durable. */
  onChange(): void {
    this.#changes++;
  }

  /** What a FLUSH that is asked for now has to cover; for `flushed`. */
  get changes(): number {
    return this.#changes;
  }

  /** A FLUSH that had to cover `changes` has succeeded at the server. False, once for each loss: something it had to cover is gone. */
  flushed(changes: number): boolean {
    if (this.#lost) {
      this.#lost = false;
      this.#durable = this.#changes;
      return false;
    }
    this.#durable = Math.max(this.#durable, changes);
    return true;
  }
}
