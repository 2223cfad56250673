/**
 * Notices that a store has lost what it had acknowledged and not flushed: the write verifier of NFS (RFC 1813 §3.3.21). A server says with
 * every RESUME which life of the store it speaks for; in another life, changes since the last FLUSH may be gone, and the next FLUSH of
 * everybody who may have counted on them must not succeed. As with fsync in Linux, everybody who has the disk open hears of a loss once;
 * a loss that nobody has heard of is told to who comes next. Sessions to one disk share one.
 */

/** Somebody who has the disk open, and the losses he has heard of. */
export interface FlushView {
  /** Losses told, or not his concern. */
  seen: number;
}

/** What is known of the durability of one disk. */
export class DurabilityWatch {
  #storeId: bigint | undefined;
  /** Changes that were acknowledged, and how many of them, from the first one on, are known to be durable or lost. */
  #changes = 0;
  #settled = 0;
  #losses = 0;
  /** Losses that somebody has heard of. */
  #told = 0;

  /** Somebody opens the disk. */
  view(): FlushView {
    return { seen: this.#told };
  }

  /** The server speaks for this life of the store. */
  onStore(storeId: bigint): void {
    if (this.#storeId !== undefined && storeId !== this.#storeId && this.#settled < this.#changes) this.#onLoss();
    this.#storeId = storeId;
  }

  /** A change was acknowledged in this life of the store that only a FLUSH makes durable. */
  onChange(storeId: bigint): void {
    this.#changes++;
    // An answer from a life that another session knows to be over.
    if (storeId !== this.#storeId) this.#onLoss();
  }

  /** What a FLUSH that is asked for now has to cover; for `flushed`. */
  get changes(): number {
    return this.#changes;
  }

  /** A FLUSH that had to cover `changes` has succeeded at the server. False, once for each view and loss: something it had to cover is gone. */
  flushed(changes: number, view: FlushView): boolean {
    this.#settled = Math.max(this.#settled, changes);
    if (view.seen === this.#losses) return true;
    view.seen = this.#losses;
    this.#told = this.#losses;
    return false;
  }

  #onLoss(): void {
    this.#losses++;
    this.#settled = this.#changes;
  }
}
