/** Bounded; when full, packets pass in order instead. */

const HELD_MAX = 1024;

export class HeldBack<T> {
  readonly #held: Array<{ readonly packet: T; behind: number }> = [];
  readonly #release: (packet: T) => void;

  constructor(release: (packet: T) => void) {
    this.#release = release;
  }

  hold(packet: T, behind: number): boolean {
    if (this.#held.length === HELD_MAX) return false;
    this.#held.push({ packet, behind });
    return true;
  }

  passed(): void {
    if (this.#held.length === 0) return;
    let kept = 0;
    for (const entry of this.#held) {
      if (--entry.behind === 0) this.#release(entry.packet);
      else this.#held[kept++] = entry;
    }
    this.#held.length = kept;
  }
}
