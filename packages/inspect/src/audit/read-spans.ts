/** Bounded: the oldest are dropped. */

export interface Ask {
  readonly first: number;
  readonly bytes: number;
}

/** Positions are PSNs counted on without wrap. */
export interface ReadSpan {
  readonly first: number;
  /** Position of the last response; -1 while the path MTU is not known. */
  last: number;
  /** Position of the following request; Infinity while there is none. */
  nextAt: number;
  /** READ responses answer it. */
  readonly isRead: boolean;
  /** In sentences. */
  readonly what: string;
  readonly packet: number;
  /** Of the RETH: bits 63..32 of the address. */
  readonly vaHigh: number;
  /** Bits 31..0 of the address. */
  readonly vaLow: number;
  readonly rkey: number;
  readonly bytes: number;
  /** What was asked for: all of it, and later parts of it again. */
  readonly asks: Ask[];
  isAnswered: boolean;
  hasResponse: boolean;
  exceededBy: number;
}

const SPANS_MAX = 512;
const ASKS_MAX = 64;

export class ReadSpans {
  #spans: ReadSpan[] = [];
  completeFrom = 0;

  add(span: ReadSpan): void {
    this.#spans.push(span);
    if (this.#spans.length <= SPANS_MAX) return;
    this.#spans = this.#spans.slice(SPANS_MAX / 2);
    this.completeFrom = this.#spans[0].first;
  }

  find(position: number): ReadSpan | undefined {
    for (let i = this.#spans.length - 1; i >= 0; i--) {
      const span = this.#spans[i];
      if (span.first > position) continue;
      return position <= span.last || (span.last < 0 && position < span.nextAt) ? span : undefined;
    }
    return undefined;
  }

  get newest(): ReadSpan | undefined {
    return this.#spans.at(-1);
  }

  /** True if each ends where the next request begins, so that none was missed. */
  setEnds(lastOf: (span: ReadSpan) => number): boolean {
    let isWhole = true;
    for (const span of this.#spans) {
      if (span.last >= 0) continue;
      span.last = lastOf(span);
      if (span.nextAt !== Number.POSITIVE_INFINITY && span.nextAt !== span.last + 1) isWhole = false;
    }
    return isWhole;
  }

  get outstanding(): number {
    let count = 0;
    for (let i = this.#spans.length - 1; i >= 0 && !this.#spans[i].isAnswered; i--) count++;
    return count;
  }

  get oldestOutstanding(): ReadSpan | undefined {
    const at = this.#spans.length - this.outstanding;
    return this.#spans[at];
  }

  isOwedBefore(position: number): boolean {
    const oldest = this.oldestOutstanding;
    return oldest !== undefined && oldest.first < position;
  }

  answered(position: number): void {
    for (let i = this.#spans.length - 1; i >= 0 && !this.#spans[i].isAnswered; i--) {
      const { last } = this.#spans[i];
      if (last >= 0 && last <= position) {
        for (let k = i; k >= 0 && !this.#spans[k].isAnswered; k--) this.#spans[k].isAnswered = true;
        return;
      }
    }
  }

  askAgain(span: ReadSpan, ask: Ask): void {
    if (span.asks.length >= ASKS_MAX) span.asks.splice(1, 1);
    span.asks.push(ask);
    span.exceededBy = 0;
  }
}
