/**
 * The sender of a TCP connection, as a model beside RDMA: slow start, congestion avoidance, fast retransmit and fast recovery (RFC 5681), partial acknowledgements in it
 * (NewReno, RFC 6582), an initial window of ten segments (RFC 6928), and the timer of RFC 6298 with a lower bound of one's own. It is not a stack: the connection
 * exists already, the receiver has room for everything, there is no SACK, and each segment is acknowledged at once.
 */

/** What a sender needs of its surroundings. */
export interface TcpSenderOptions {
  /** Bytes to send, more than 0. */
  readonly bytes: number;
  /** Payload of a segment. */
  readonly segmentBytes: number;
  /** The shortest retransmission timeout, ns. */
  readonly minimumRtoNs: number;
  /** Sends so many bytes from this one on. */
  readonly send: (sequence: number, bytes: number) => void;
  /** Asks for {@link TcpSender.onTimer} at this time; asked again, the earlier time is void. */
  readonly wakeAt: (timeNs: number) => void;
}

const INITIAL_SEGMENTS = 10;
const DUPLICATES = 3;
/** Before the first sample (RFC 6298 §2.1), no shorter than the bound. */
const FIRST_RTO_NS = 1e9;
const RTO_MAX_NS = 60e9;

/** See above. Bytes count from 0. */
export class TcpSender {
  /** Segments that were sent again. */
  retransmissions = 0;
  /** Retransmission timeouts. */
  timeouts = 0;
  readonly #options: TcpSenderOptions;
  #acknowledged = 0;
  #next = 0;
  #window: number;
  #threshold = Number.POSITIVE_INFINITY;
  #duplicates = 0;
  /** In fast recovery: it ends when all up to here is acknowledged. */
  #recoverUntil: number | undefined;
  /** The furthest byte sent so far: what is before it is sent again. */
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

  /** Whether the receiver has acknowledged every byte. */
  get isDone(): boolean {
    return this.#acknowledged === this.#options.bytes;
  }

  /** Bytes that may be in flight. */
  get windowBytes(): number {
    return this.#window;
  }

  /** Sends the first segments. */
  start(nowNs: number): void {
    this.#fill(nowNs);
    this.#options.wakeAt(nowNs + this.#rtoNs);
  }

  /** The receiver waits for the byte `acknowledged`. */
  onAcknowledgement(acknowledged: number, nowNs: number): void {
    if (this.isDone) return;
    if (acknowledged > this.#acknowledged) this.#onProgress(acknowledged, nowNs);
    else if (acknowledged === this.#acknowledged && this.#sentUntil > acknowledged) this.#onDuplicate();
    if (!this.isDone) this.#fill(nowNs);
  }

  /** The time of the last `wakeAt` has come: everything that is not acknowledged is sent again, from one segment on (RFC 5681 §3.1, RFC 6298 §5). */
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

  /** The first segment that is not acknowledged. */
  #sendAgain(): void {
    this.#timed = undefined;
    this.retransmissions++;
    this.#send(this.#acknowledged);
  }

  /** As much as the window allows. */
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

  /** Returns the end of the segment. */
  #send(start: number): number {
    const { bytes, segmentBytes, send } = this.#options;
    const length = Math.min(segmentBytes, bytes - start);
    send(start, length);
    return start + length;
  }

  /** RFC 6298 §2. */
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
