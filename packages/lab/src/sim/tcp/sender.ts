/**
 * A model of a TCP sender: slow start, congestion avoidance, fast retransmit and recovery (RFC 5681), NewReno partial
 * acknowledgements (RFC 6582), an initial window of ten segments (RFC 6928), and the timer of RFC 6298 with a
 * configurable lower bound. There is no SACK and no receive window, and each segment is acknowledged at once.
 */

export interface TcpSenderOptions {
  readonly bytes: number;
  readonly segmentBytes: number;
  readonly minimumRtoNs: number;
  readonly send: (sequence: number, bytes: number) => void;
  readonly wakeAt: (timeNs: number) => void;
}

const INITIAL_SEGMENTS = 10;
const DUPLICATES = 3;
/** Before the first sample (RFC 6298 §2.1), no shorter than the bound. */
const FIRST_RTO_NS = 1e9;
const RTO_MAX_NS = 60e9;

export class TcpSender {
  retransmissions = 0;
  timeouts = 0;
  readonly #options: TcpSenderOptions;
  #acknowledged = 0;
  #next = 0;
  #window: number;
  #threshold = Number.POSITIVE_INFINITY;
  #duplicates = 0;
  #recoverUntil: number | undefined;
  #sentUntil = 0;
  #rtoNs: number;
  #smoothedNs: number | undefined;
  #variationNs = 0;
  /** One segment is timed at a time, and never one that was sent twice (Karn). */
  #timed: { readonly end: number; readonly sentNs: number } | undefined;

  constructor(options: TcpSenderOptions) {
    this.#options = options;
    this.#window = INITIAL_SEGMENTS * options.segmentBytes;
    this.#rtoNs = Math.max(FIRST_RTO_NS, options.minimumRtoNs);
  }

  get isDone(): boolean {
    return this.#acknowledged === this.#options.bytes;
  }

  get windowBytes(): number {
    return this.#window;
  }

  start(nowNs: number): void {
    this.#fill(nowNs);
    this.#options.wakeAt(nowNs + this.#rtoNs);
  }

  onAcknowledgement(acknowledged: number, nowNs: number): void {
    if (this.isDone) return;
    if (acknowledged > this.#acknowledged) this.#onProgress(acknowledged, nowNs);
    else if (acknowledged === this.#acknowledged && this.#sentUntil > acknowledged) this.#onDuplicate();
    if (!this.isDone) this.#fill(nowNs);
  }

  /**
   * The time of the last `wakeAt` has come: everything that is not acknowledged is retransmitted, from one segment on
   * (RFC 5681 §3.1, RFC 6298 §5).
   */
  onTimer(nowNs: number): void {
    if (this.isDone) return;
    this.timeouts++;
    this.#halve();
    this.#window = this.#options.segmentBytes;
    this.#next = this.#acknowledged;
    this.#duplicates = 0;
    this.#recoverUntil = undefined;
    this.#timed = undefined;
    this.#rtoNs = Math.min(2 * this.#rtoNs, RTO_MAX_NS);
    this.#fill(nowNs);
    this.#options.wakeAt(nowNs + this.#rtoNs);
  }

  #onProgress(acknowledged: number, nowNs: number): void {
    const newBytes = acknowledged - this.#acknowledged;
    const { segmentBytes } = this.#options;
    this.#acknowledged = acknowledged;
    this.#next = Math.max(this.#next, acknowledged);
    this.#duplicates = 0;
    if (this.#timed !== undefined && acknowledged >= this.#timed.end) this.#sample(nowNs - this.#timed.sentNs);
    if (this.#recoverUntil === undefined) {
      const step = this.#window < this.#threshold ? Math.min(newBytes, segmentBytes) : segmentBytes ** 2 / this.#window;
      this.#window += step;
    } else if (acknowledged >= this.#recoverUntil) {
      this.#recoverUntil = undefined;
      this.#window = this.#threshold;
    } else {
      this.#window = Math.max(segmentBytes, this.#window - newBytes + segmentBytes);
      this.#sendAgain();
    }
    if (!this.isDone) this.#options.wakeAt(nowNs + this.#rtoNs);
  }

  #onDuplicate(): void {
    const { segmentBytes } = this.#options;
    if (this.#recoverUntil !== undefined) this.#window += segmentBytes;
    else if (++this.#duplicates === DUPLICATES) {
      this.#recoverUntil = this.#sentUntil;
      this.#halve();
      this.#window = this.#threshold + DUPLICATES * segmentBytes;
      this.#sendAgain();
    }
  }

  #halve(): void {
    this.#threshold = Math.max((this.#sentUntil - this.#acknowledged) / 2, 2 * this.#options.segmentBytes);
  }

  #sendAgain(): void {
    this.#timed = undefined;
    this.retransmissions++;
    this.#send(this.#acknowledged);
  }

  #fill(nowNs: number): void {
    const { bytes, segmentBytes } = this.#options;
    while (this.#next < bytes && this.#next - this.#acknowledged + segmentBytes <= this.#window) {
      const start = this.#next;
      const end = this.#send(start);
      if (start < this.#sentUntil) this.retransmissions++;
      else this.#timed ??= { end, sentNs: nowNs };
      this.#next = end;
      this.#sentUntil = Math.max(this.#sentUntil, end);
    }
  }

  #send(start: number): number {
    const { bytes, segmentBytes, send } = this.#options;
    const length = Math.min(segmentBytes, bytes - start);
    send(start, length);
    return start + length;
  }

  #sample(roundTripNs: number): void {
    this.#timed = undefined;
    if (this.#smoothedNs === undefined) {
      this.#smoothedNs = roundTripNs;
      this.#variationNs = roundTripNs / 2;
    } else {
      this.#variationNs = 0.75 * this.#variationNs + 0.25 * Math.abs(this.#smoothedNs - roundTripNs);
      this.#smoothedNs = 0.875 * this.#smoothedNs + 0.125 * roundTripNs;
    }
    this.#rtoNs = Math.max(this.#options.minimumRtoNs, this.#smoothedNs + 4 * this.#variationNs);
  }
}
