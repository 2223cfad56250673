/** The READs and atomics of one direction that may still be answered or asked for again. Bounded: the oldest are forgotten. */

/** What one request asks for. */
export interface Ask {
  /** Position of the request. */
  readonly first: number;
  /** From there on. */
  readonly bytes: number;
}

/** One READ or atomic, as it was asked for first. Positions are PSNs counted on without wrap. */
export interface ReadSpan {
  /** Position of the request, and of the first response. */
  readonly first: number;
  /** Position of the last response; -1 while the path MTU is not known. */
  last: number;
  /** Position of the request behind it; Infinity while there is none. */
  nextAt: number;
  /** False for an atomic. */
  readonly isRead: boolean;
  /** Number of the request in the file. */
  readonly packet: number;
  /** Of the RETH: bits 63..32 of the address. */
  readonly vaHigh: number;
  /** Bits 31..0 of the address. */
  readonly vaLow: number;
  /** Of the RETH. */
  readonly rkey: number;
  /** Bytes asked for. */
  readonly bytes: number;
  /** What was asked for: all of it, and later parts of it again. */
  readonly asks: Ask[];
  /** Its last answer has been seen, or one of a later request. */
  isAnswered: boolean;
  /** One of its responses has been seen. */
  hasResponse: boolean;
  /** Number of the request that came while this one and too many others were outstanding; 0: none. */
  exceededBy: number;
}

const SPANS_MAX = 512;
const ASKS_MAX = 64;

/** In the order of their positions. */
export class ReadSpans {
  #spans: ReadSpan[] = [];
  /** Position from which on none has been forgotten. */
  completeFrom = 0;

  /** Takes the newest. */
  add(span: ReadSpan): void {
    this.#spans.push(span);
    if (this.#spans.length <= SPANS_MAX) return;
    this.#spans = this.#spans.slice(SPANS_MAX / 2);
    this.completeFrom = this.#spans[0].first;
  }

  /** The one that the position belongs to. */
  find(position: number): ReadSpan | undefined {
    for (let i = this.#spans.length - 1; i >= 0; i--) {
      const span = this.#spans[i];
      if (span.first > position) continue;
      return position <= span.last || (span.last < 0 && position < span.nextAt) ? span : undefined;
    }
    return undefined;
  }

  /** What was asked for last; undefined before the first. */
  get newest(): ReadSpan | undefined {
    return this.#spans.at(-1);
  }

  /** The path MTU became known: sets where the READs end. True if each ends where the next request begins, so that none was missed. */
  setEnds(lastOf: (span: ReadSpan) => number): boolean {
    let isWhole = true;
    for (const span of this.#spans) {
      if (span.last >= 0) continue;
      span.last = lastOf(span);
      if (span.nextAt !== Number.POSITIVE_INFINITY && span.nextAt !== span.last + 1) isWhole = false;
    }
    return isWhole;
  }

  /** How many have no answer. */
  get outstanding(): number {
    let count = 0;
    for (let i = this.#spans.length - 1; i >= 0 && !this.#spans[i].isAnswered; i--) count++;
    return count;
  }

  /** The oldest without an answer. */
  get oldestOutstanding(): ReadSpan | undefined {
    const at = this.#spans.length - this.outstanding;
    return this.#spans[at];
  }

  /** Whether one before the position has no answer. */
  isOwedBefore(position: number): boolean {
    const oldest = this.oldestOutstanding;
    return oldest !== undefined && oldest.first < position;
  }

  /** Everything up to the position has been answered. */
  answered(position: number): void {
    for (let i = this.#spans.length - 1; i >= 0 && !this.#spans[i].isAnswered; i--) {
      const { last } = this.#spans[i];
      if (last >= 0 && last <= position) {
        for (let k = i; k >= 0 && !this.#spans[k].isAnswered; k--) this.#spans[k].isAnswered = true;
        return;
      }
    }
  }

  /** A part of the READ has been asked for again. */
  askAgain(span: ReadSpan, ask: Ask): void {
    if (span.asks.length >= ASKS_MAX) span.asks.splice(1, 1);
    span.asks.push(ask);
    span.exceededBy = 0;
  }
}
