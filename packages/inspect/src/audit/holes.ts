/** Positions that the capture has not shown yet, though later ones. Bounded: the oldest are forgotten. */

interface Hole {
  readonly from: number;
  readonly to: number;
  /** When a later packet showed the hole. */
  readonly seenNs: number;
}

const HOLES_MAX = 64;

/** Of one direction. */
export class Holes {
  #holes: Hole[] = [];

  /** These positions were left out. */
  add(from: number, to: number, seenNs: number): void {
    this.#holes.push({ from, to, seenNs });
    if (this.#holes.length > HOLES_MAX) this.#holes.shift();
  }

  /** When the hole that begins at the position was noticed; undefined: there is none. */
  noticedNs(position: number): number | undefined {
    return this.#holes.find(({ from }) => from === position)?.seenNs;
  }

  /** The position is there now. Returns when it was noticed to be missing; undefined: it was not missing. */
  fill(position: number): number | undefined {
    const at = this.#holes.findIndex(({ from, to }) => position >= from && position <= to);
    if (at < 0) return undefined;
    const { from, to, seenNs } = this.#holes[at];
    const rest = [
      { from, to: position - 1, seenNs },
      { from: position + 1, to, seenNs },
    ].filter((hole) => hole.from <= hole.to);
    this.#holes.splice(at, 1, ...rest);
    return seenNs;
  }
}
