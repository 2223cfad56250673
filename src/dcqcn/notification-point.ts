/**
 * The notification point of DCQCN, one per flow at the receiver: decides which marked packets are answered by a congestion notification.
 *
 * With an interval, the first mark is answered at once and marks during the interval after it by nothing: coalescing at the receiver
 * (SIGCOMM'15: 50 us; Azure's first NIC generation). Interval 0 answers every mark, and the sender has to coalesce (the second and third).
 */
export class NotificationPoint {
  readonly #intervalNs: number;
  #lastNs = Number.NEGATIVE_INFINITY;

  constructor(intervalNs: number) {
    this.#intervalNs = intervalNs;
  }

  /** A packet marked CE has arrived. True: a notification is due. */
  onMarked(now: number): boolean {
    if (now - this.#lastNs < this.#intervalNs) return false;
    this.#lastNs = now;
    return true;
  }
}
