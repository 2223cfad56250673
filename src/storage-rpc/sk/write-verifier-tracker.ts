/**
 * Notices that a store has lost changes that it had acknowledged and not flushed, by the write verifier of NFS (RFC
 * 1813 §3.3.21). A server sends the verifier of its store with every RESUME. With another verifier, changes since the
 * last FLUSH may be gone, and the next FLUSH of each opener that may have counted on them must not succeed. As with
 * fsync in Linux, each opener hears of a loss once; a loss that no opener has heard of is reported to the next one.
 * Sessions to one disk share a tracker.
 */

/** An opener of the disk, and the losses that it has heard of. */
export interface WriteVerifierCursor {
  /** Losses reported to it, or before it opened the disk. */
  seen: number;
}

export class WriteVerifierTracker {
  #writeVerifier: bigint | undefined;
  #changes = 0;
  #settled = 0;
  #losses = 0;
  /** Losses that an opener has heard of. */
  #reported = 0;

  /** For a new opener of the disk. */
  cursor(): WriteVerifierCursor {
    return { seen: this.#reported };
  }

  /** The verifier of a RESUME. */
  onVerifier(writeVerifier: bigint): void {
    if (this.#writeVerifier !== undefined && writeVerifier !== this.#writeVerifier && this.#settled < this.#changes)
      this.#onLoss();
    this.#writeVerifier = writeVerifier;
  }

  /** A change was acknowledged, under this verifier, that only a FLUSH makes durable. */
  onChange(writeVerifier: bigint): void {
    this.#changes++;
    // Another session has seen a newer verifier.
    if (writeVerifier !== this.#writeVerifier) this.#onLoss();
  }

  get changes(): number {
    return this.#changes;
  }

  /**
   * A FLUSH that had to cover `changes` has succeeded at the server. False, once for each cursor and loss: a change
   * that it had to cover is gone.
   */
  flushed(changes: number, cursor: WriteVerifierCursor): boolean {
    this.#settled = Math.max(this.#settled, changes);
    if (cursor.seen === this.#losses) return true;
    cursor.seen = this.#losses;
    this.#reported = this.#losses;
    return false;
  }

  #onLoss(): void {
    this.#losses++;
    this.#settled = this.#changes;
  }
}
