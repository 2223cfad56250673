/** Pieces of something long, read side by side and given out in order. As with the read-ahead of a kernel, more are under way the more have been taken. */

/** Pieces under way at most. */
const DEPTH = 4;

/** Reads `[from, end)`. What has been asked for and is not taken any more is forgotten. */
export class ReadAhead<T> {
  readonly #read: (from: number, to: number) => Promise<T>;
  readonly #end: number;
  readonly #pieceBytes: number;
  readonly #underWay: Array<Promise<T>> = [];
  #next: number;
  #depth = 1;

  /** `read` is called with the borders of each piece, in order. */
  constructor(
    { from, end, pieceBytes }: { readonly from: number; readonly end: number; readonly pieceBytes: number },
    read: (from: number, to: number) => Promise<T>,
  ) {
    this.#next = from;
    this.#end = end;
    this.#pieceBytes = pieceBytes;
    this.#read = read;
  }

  /** Whether all has been taken. */
  get isOver(): boolean {
    return this.#underWay.length === 0 && this.#next >= this.#end;
  }

  /** The next piece. Rejects as `read` did for it. */
  take(): Promise<T> {
    this.#fill();
    const piece = this.#underWay.shift()!;
    this.#depth = Math.min(DEPTH, 2 * this.#depth);
    this.#fill();
    return piece;
  }

  #fill(): void {
    while (this.#underWay.length < this.#depth && this.#next < this.#end) {
      const to = Math.min(this.#next + this.#pieceBytes, this.#end);
      const piece = this.#read(this.#next, to);
      piece.catch(() => {}); // Whoever takes it is told.
      this.#underWay.push(piece);
      this.#next = to;
    }
  }
}
