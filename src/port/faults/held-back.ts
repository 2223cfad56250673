/** Packets that a reorder rule holds back until others have overtaken them. Bounded; when full, packets pass in order instead. */

const HELD_MAX = 1024;

/** Up to 1,024 packets of one direction, each with the number of packets that are still to overtake it. */
export class HeldBack<T> {
  readonly #held: Array<{ readonly packet: T; behind: number }> = [];
  readonly #release: (packet: T) => void;

  constructor(release: (packet: T) => void) {
    this.#release = release;
  }

  /** False, and nothing is held, when there is no room. */
  hold(packet: T, behind: number): boolean {
    if (this.#held.length === HELD_MAX) return false;
    this.#held.push({ packet, behind });
    return true;
  }

  /** To be called after each packet that passed: lets go of the packets whose wait is over, oldest first. */
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
