/**
 * The notification point of DCQCN, one per flow at the receiver: decides when marked packets are answered by a
 * congestion notification.
 *
 * With an interval, marks are coalesced at the receiver (SIGCOMM'15: 50 us; Azure's first NIC generation). Since the
 * last notification: the first mark is answered at once, and marks during the interval after it by nothing.
 * Free-running: a timer that the first mark starts answers at each tick, if a mark came since the last one (ns3-rdma).
 * Interval 0 answers every mark, and the sender has to coalesce (the second and third generation).
 */
export class NotificationPoint {
  readonly #intervalNs: number;
  readonly #isFreeRunning: boolean;
  #lastNs = Number.NEGATIVE_INFINITY;
  #firstNs = Number.NaN;
  /** When the tick comes that answers the marks so far; Infinity while there are none. */
  dueNs = Number.POSITIVE_INFINITY;

  constructor(intervalNs: number, isFreeRunning: boolean) {
    this.#intervalNs = intervalNs;
    this.#isFreeRunning = isFreeRunning && intervalNs > 0;
  }

  /** A packet marked CE has arrived. True: a notification is due now. */
  onMarked(now: number): boolean {
    if (this.#isFreeRunning) {
      if (Number.isNaN(this.#firstNs)) this.#firstNs = now;
      if (this.dueNs === Number.POSITIVE_INFINITY) this.dueNs = nextTick(this.#firstNs, this.#intervalNs, now);
      return false;
    }
    if (now - this.#lastNs < this.#intervalNs) return false;
    this.#lastNs = now;
    return true;
  }

  /** True when a tick has come that has marks to answer. */
  onTick(now: number): boolean {
    if (now < this.dueNs) return false;
    this.dueNs = Number.POSITIVE_INFINITY;
    return true;
  }
}

/** The first tick after `now` of a timer that started at `startNs`. */
export function nextTick(startNs: number, intervalNs: number, now: number): number {
  return startNs + (Math.floor((now - startNs) / intervalNs) + 1) * intervalNs;
}
