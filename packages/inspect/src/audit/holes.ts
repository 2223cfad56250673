/** Bounded: the oldest are dropped. */

interface Hole {
  readonly from: number;
  readonly to: number;
  readonly seenNs: number;
}

const HOLES_MAX = 64;

export class Holes {
  #holes: Hole[] = [];

  add(from: number, to: number, seenNs: number): void {
    this.#holes.push({ from, to, seenNs });
    if (this.#holes.length > HOLES_MAX) this.#holes.shift();
  }

  noticedNs(position: number): number | undefined {
    return this.#holes.find(({ from }) => from === position)?.seenNs;
  }

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
