/** Read-ahead: pieces are read concurrently and delivered in order; the window grows with the consumed data. */

const DEPTH = 4;

export class ReadAhead<T> {
  readonly #read: (from: number, to: number) => Promise<T>;
  readonly #end: number;
  readonly #pieceBytes: number;
  readonly #underWay: Array<Promise<T>> = [];
  #next: number;
  #depth = 1;

  constructor(
    { from, end, pieceBytes }: { readonly from: number; readonly end: number; readonly pieceBytes: number },
    read: (from: number, to: number) => Promise<T>,
  ) {
    this.#next = from;
    this.#end = end;
    this.#pieceBytes = pieceBytes;
    this.#read = read;
  }

  get isOver(): boolean {
    return this.#underWay.length === 0 && this.#next >= this.#end;
  }

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
      piece.catch(() => {});
      this.#underWay.push(piece);
      this.#next = to;
    }
  }
}
