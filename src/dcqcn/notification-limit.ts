/**
 * Decides which congestion notifications a data sender accepts. A CNP is not authenticated: an attacker only needs
 * addresses, ports and QPN. But switches mark only packets with ECT, and an honest receiver notifies of each marked
 * packet once at most (IBTA annex A17.9.3). So
 *
 *   - none arrives if no packet with ECT was sent for longer than a round trip can take;
 *   - no more of them lower the rate than packets with ECT were sent.
 *
 * Each packet with ECT earns one cut of the rate, up to a bound, and each cut spends one. A notification without such a
 * packet is suspicious and changes nothing. For some time after it a cut costs more. So a flow that a flood has slowed
 * down sends few packets and recovers. A fast flow continues to accept notifications as often as an honest receiver
 * sends them, so that a flood cannot make it ignore congestion.
 */

/**
 * An honest notification comes within one round trip of the marked packet. 2 s is more than a round trip of 2 x 750 ms,
 * the longest delay in tests of connections.
 */
const ROUND_TRIP_MAX_NS = 2e9;
/** After this many cuts every rate is at its minimum. */
const CREDIT_MAX = 256;
/**
 * Packets with ECT per cut while notifications are in doubt: the packets of 4 KiB in 54 us at 40 Gb/s, the usual
 * interval of CNPs.
 */
const DOUBTED_CUT_PACKETS = 64;
/** How long notifications are in doubt after the last one for which nothing was left to spend. */
const DOUBT_NS = 2e9;

export class NotificationLimit {
  #credit = 0;
  #lastEctNs = Number.NEGATIVE_INFINITY;
  #doubtEndsNs = Number.NEGATIVE_INFINITY;
  #toldNs = Number.NEGATIVE_INFINITY;

  reset(): void {
    this.#credit = 0;
    this.#lastEctNs = Number.NEGATIVE_INFINITY;
    this.#doubtEndsNs = Number.NEGATIVE_INFINITY;
    this.#toldNs = Number.NEGATIVE_INFINITY;
  }

  onEctSent(now: number): void {
    this.#lastEctNs = now;
    if (this.#credit < CREDIT_MAX) this.#credit++;
  }

  #price(now: number): number {
    return now < this.#doubtEndsNs ? DOUBTED_CUT_PACKETS : 1;
  }

  #mayBeOnTheWay(now: number): boolean {
    return now - this.#lastEctNs <= ROUND_TRIP_MAX_NS;
  }

  /** True when a notification that arrives now can be about a packet that was sent. */
  admits(now: number): boolean {
    return this.#mayBeOnTheWay(now) && this.#credit >= this.#price(now);
  }

  onCut(now: number): void {
    this.#credit -= this.#price(now);
  }

  /** True when it is the first for {@link DOUBT_NS}: worth an event. */
  onSuspicious(now: number): boolean {
    if (this.#mayBeOnTheWay(now)) this.#doubtEndsNs = now + DOUBT_NS;
    const isFirst = now - this.#toldNs >= DOUBT_NS;
    if (isFirst) this.#toldNs = now;
    return isFirst;
  }
}
