/**
 * RACK-TLP (RFC 8985), from TCP's segments to PSNs: selective repeat that detects losses by time, not by order. For
 * networks that reorder, and for lost retransmissions and tails, which order does not reveal.
 *
 *   - RACK (§6.2): a packet is lost when one that was sent later has been delivered, and
 *       sent + RACK.rtt + reo_wnd <= now,   reo_wnd = min(mult * min_RTT / 4, SRTT).
 *     A retransmission counts from the time when it was sent, so its loss is detected like any other.
 *   - reo_wnd (§6.2 step 4): `mult` grows by one in a round trip that shows a spurious retransmission, and is 1 again
 *     after 16 recoveries without one. TCP learns of these by DSACK. Here the answer arrives sooner after the
 *     retransmission than min_RTT, so it was for the first copy.
 *   - TLP (§7): if a requested answer is missing for PTO = 2 SRTT, one packet is retransmitted, so that its answer
 *     reports the other missing ones. PTO doubles with each probe until a round trip has been measured (Karn; RFC 6298
 *     §5.7).
 *   - RTO (§6.3): the local ACK timeout of the queue pair, as the last. The oldest packet counts as lost, and of the
 *     others those that are overdue.
 *
 * It deviates in three points. reo_wnd never shrinks to 0 because three packets are ahead (DupThresh): that rule is for
 * networks that do not reorder. TLP sends the oldest packet in flight, not the newest: its answer proves as much,
 * because it was sent last, and a READ is requested from its beginning. min_RTT is the minimum of the connection, not
 * of the last minutes: too low a value costs retransmissions, to which `mult` adapts.
 *
 * The receiver is that of selective repeat. If the receiver buffers nothing after a gap, all packets after a reported
 * one are retransmitted.
 */

import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { psnAdd, psnDiff } from '../packet/psn.js';
import {
  PACKET_DELIVERED,
  PACKET_OUTSTANDING,
  PACKET_RESENT,
  PACKET_SACKED,
  PacketAccounts,
  SELECTIVE_SPAN,
  SPAN_MASK,
} from './packet-accounts.js';
import { defineRecovery, LOSS_DROPPED, LOSS_TIMEOUT, NO_REWIND } from './recovery.js';
import { SelectiveRepeatReceiver, selectiveRepeat } from './selective-repeat.js';

const NEVER = Number.POSITIVE_INFINITY;
/**
 * Recoveries without a spurious retransmission until the window is the shortest again (RFC 8985 §6.2: reo_wnd_persist).
 */
const PERSIST = 16;
/** SRTT moves by this part of the difference (RFC 6298 §2). */
const SRTT_GAIN = 1 / 8;

/** The parameters, which derived schemes also have. */
export const RACK_TABLE = {
  /** The shortest reordering window, as a part of the shortest round trip. 0: order decides. */
  reorderShare: { default: 0.25, min: 0, max: 16 },
  /** PTO in smoothed round trips. 0: no probe. */
  probeRtts: { default: 2, min: 0, max: 1000 },
  /** PTO is at least this. */
  probeMinimumNs: { default: 0, ...LIMITS.timeOrZeroNs },
} as const satisfies ParameterTable;

export class RackSender extends PacketAccounts {
  override readonly usesTime = true;
  readonly #p: ParametersOf<typeof RACK_TABLE>;
  /** When the newest copy was sent, by slot. */
  readonly #sentNs = new Float64Array(SELECTIVE_SPAN);
  /** The next new PSN just after that: everything that was sent before lies before it. */
  readonly #sentBefore = new Uint32Array(SELECTIVE_SPAN);
  readonly #isRepeated = new Uint8Array(SELECTIVE_SPAN);
  #nowNs = 0;
  /**
   * Of the delivered packet that was sent last, RACK.segment: its time, its PSN, and the PSN before which everything
   * was sent earlier.
   */
  #newestNs = -1;
  #newestPsn = 0;
  #newestBefore = 0;
  /** RACK.rtt: its round trip. */
  #rttNs = 0;
  #minRttNs = NEVER;
  #srttNs = NEVER;
  /** Round trip of the newest packet that this answer is about; -1: none. */
  #sampleNs = -1;
  #heard = false;
  #isSpurious = false;
  #mult = 1;
  #persist = 0;
  /** A spurious retransmission has counted; the next counts from this PSN on. -1: now. */
  #roundEnd = -1;
  /** Losses are being repaired until this PSN is acknowledged. -1: none. */
  #recoveryEnd = -1;
  #reorderDueNs = NEVER;
  #probeDueNs = NEVER;
  /** When the probe was sent whose answer is awaited; -1: none is. */
  #probedNs = -1;
  #probedPsn = 0;
  /**
   * Backoff of PTO: doubles with each probe until a round trip has been measured, since answers to retransmissions
   * measure none.
   */
  #ptoBackoff = 1;

  constructor(parameters: ParametersOf<typeof RACK_TABLE>) {
    super();
    this.#p = parameters;
  }

  override reset(psn: number): void {
    super.reset(psn);
    this.#isRepeated.fill(0);
    this.#newestNs = -1;
    this.#newestPsn = psn;
    this.#newestBefore = psn;
    this.#rttNs = 0;
    this.#minRttNs = NEVER;
    this.#srttNs = NEVER;
    this.#sampleNs = -1;
    this.#heard = false;
    this.#isSpurious = false;
    this.#mult = 1;
    this.#persist = 0;
    this.#roundEnd = -1;
    this.#recoveryEnd = -1;
    this.#reorderDueNs = NEVER;
    this.#probeDueNs = NEVER;
    this.#probedNs = -1;
    this.#ptoBackoff = 1;
  }

  /** The reordering window now, in nanoseconds; 0 until a round trip is known. */
  get reorderWindowNs(): number {
    if (this.#minRttNs === NEVER) return 0;
    return Math.min(this.#mult * this.#p.reorderShare * this.#minRttNs, this.#srttNs);
  }

  override get dueNs(): number {
    return Math.min(this.#reorderDueNs, this.#probeDueNs);
  }

  override onSent(psn: number, psns: number, next: number, now: number): void {
    for (let k = 0; k < psns; k++) {
      const i = psnAdd(psn, k) & SPAN_MASK;
      this.#isRepeated[i] = this.state[i] === PACKET_OUTSTANDING ? 0 : 1;
      this.#sentNs[i] = now;
      this.#sentBefore[i] = next;
    }
  }

  override onAwaited(now: number): void {
    if (this.#probedNs < 0) this.#probeDueNs = now + this.#probeTimeoutNs;
  }

  /** Infinity: no round trip is known yet, or probes are off. */
  get #probeTimeoutNs(): number {
    const { probeRtts, probeMinimumNs } = this.#p;
    return probeRtts === 0 ? NEVER : this.#ptoBackoff * Math.max(probeRtts * this.#srttNs, probeMinimumNs);
  }

  override onAnswer(now: number): void {
    this.#nowNs = now;
    this.#sampleNs = -1;
  }

  override markDelivered(psn: number): void {
    this.#delivered(psn);
    super.markDelivered(psn);
  }

  override markSacked(psn: number): void {
    this.#delivered(psn);
    super.markSacked(psn);
  }

  override advance(psn: number): number {
    for (let done = this.oldest; done !== psn; done = psnAdd(done, 1)) this.#delivered(done);
    return super.advance(psn);
  }

  /** RFC 8985 §6.2 steps 1 and 2: `psn` has arrived, in one of its copies. */
  #delivered(psn: number): void {
    const i = psn & SPAN_MASK;
    const state = this.state[i];
    if (state === PACKET_DELIVERED || state === PACKET_SACKED) return;
    const sentNs = this.#sentNs[i];
    const rttNs = this.#nowNs - sentNs;
    const isRepeated = state === PACKET_RESENT || this.#isRepeated[i] === 1;
    this.#heard = true;
    if (isRepeated && rttNs < this.#minRttNs) {
      this.#isSpurious = true;
      return;
    }
    if (!isRepeated) {
      this.#sampleNs = rttNs;
      if (rttNs < this.#minRttNs) this.#minRttNs = rttNs;
    }
    this.#isEvidence(psn, rttNs);
  }

  /** The copy of `psn` that was sent last has arrived, `rttNs` after that. */
  #isEvidence(psn: number, rttNs: number): void {
    const i = psn & SPAN_MASK;
    if (!isSentAfter(this.#sentNs[i], psn, this.#newestNs, this.#newestPsn)) return;
    this.#newestNs = this.#sentNs[i];
    this.#newestPsn = psn;
    this.#newestBefore = this.#sentBefore[i];
    this.#rttNs = rttNs;
  }

  override onLoss(first: number, end: number, _messageStart: number, _next: number, cause: number): number {
    if (cause === LOSS_TIMEOUT) {
      const overdueNs = this.#nowNs - this.#rttNs - this.reorderWindowNs;
      for (let psn = first; psn !== end; psn = psnAdd(psn, 1)) {
        if (psn === first || this.#isMissing(psn, overdueNs)) this.markLost(psn);
      }
      return NO_REWIND;
    }
    if (cause === LOSS_DROPPED) {
      // The report cannot be about packets that were retransmitted less than a round trip ago.
      for (let psn = first; psn !== end; psn = psnAdd(psn, 1)) {
        const i = psn & SPAN_MASK;
        const state = this.state[i];
        if (state === PACKET_DELIVERED || (state === PACKET_RESENT && this.#sentNs[i] + this.#shortestNs > this.#nowNs))
          continue;
        this.markLost(psn);
      }
      return NO_REWIND;
    }
    // The receiver lacks the packet that it expects next: it buffered that packet and then had to refuse it.
    if (this.state[first & SPAN_MASK] === PACKET_SACKED) this.markLost(first);
    const newest = psnAdd(end, -1);
    const i = newest & SPAN_MASK;
    const rttNs = this.#nowNs - this.#sentNs[i];
    // A READ that is buffered after the gap, or that an acknowledgement jumps past: a valid time sample, though it is
    // not done.
    const isKnown = newest === first || this.state[i] === PACKET_SACKED || this.state[i] === PACKET_DELIVERED;
    if (!isKnown && (this.#isRepeated[i] === 0 || rttNs >= this.#shortestNs)) this.#isEvidence(newest, rttNs);
    return NO_REWIND;
  }

  get #shortestNs(): number {
    return this.#minRttNs === NEVER ? 0 : this.#minRttNs;
  }

  /** It has not arrived, was sent at `ns` or before, and does not wait to be retransmitted. */
  #isMissing(psn: number, ns: number): boolean {
    const i = psn & SPAN_MASK;
    const state = this.state[i];
    return (state === PACKET_OUTSTANDING || state === PACKET_RESENT) && this.#sentNs[i] <= ns;
  }

  override detectLosses(unacked: number, next: number, awaits: boolean, now: number): boolean {
    this.#nowNs = now;
    if (this.#heard) this.#learn(unacked, next, awaits, now);
    let foundLost = this.#detectLossesByTime(unacked, next, now);
    if (now >= this.#probeDueNs) {
      this.#probeDueNs = NEVER;
      if (unacked !== next && this.nextResend(unacked, next) < 0) {
        this.#probedNs = now;
        this.#probedPsn = unacked;
        this.#ptoBackoff *= 2;
        this.markLost(unacked);
        foundLost = true;
      }
    }
    return foundLost;
  }

  /**
   * After an answer about something new: round trips, the reordering window (RFC 8985 §6.2 step 4), and the time of the
   * next probe.
   */
  #learn(unacked: number, next: number, awaits: boolean, now: number): void {
    this.#heard = false;
    if (this.#sampleNs >= 0) {
      this.#srttNs =
        this.#srttNs === NEVER ? this.#sampleNs : this.#srttNs + SRTT_GAIN * (this.#sampleNs - this.#srttNs);
      this.#sampleNs = -1;
      this.#ptoBackoff = 1;
    }
    if (this.#roundEnd >= 0 && psnDiff(unacked, this.#roundEnd) >= 0) this.#roundEnd = -1;
    const hasRecovered = this.#recoveryEnd >= 0 && psnDiff(unacked, this.#recoveryEnd) >= 0;
    if (hasRecovered) this.#recoveryEnd = -1;
    if (this.#isSpurious && this.#roundEnd < 0) {
      this.#roundEnd = next;
      this.#mult++;
      this.#persist = PERSIST;
    } else if (hasRecovered && --this.#persist <= 0) this.#mult = 1;
    this.#isSpurious = false;
    // Answers to packets before the probe do not end the wait for its answer.
    if (this.#newestNs >= this.#probedNs || psnDiff(unacked, this.#probedPsn) > 0) this.#probedNs = -1;
    this.#probeDueNs = awaits && unacked !== next && this.#probedNs < 0 ? now + this.#probeTimeoutNs : NEVER;
  }

  /** RFC 8985 §6.2 step 5. True when a packet is found to be lost. */
  #detectLossesByTime(unacked: number, next: number, now: number): boolean {
    this.#reorderDueNs = NEVER;
    if (this.#newestNs < 0) return false;
    const end = psnDiff(this.#newestBefore, next) < 0 ? this.#newestBefore : next;
    if (psnDiff(end, unacked) <= 0) return false;
    const lossDelayNs = this.#rttNs + this.reorderWindowNs;
    let foundLost = false;
    for (let psn = unacked; psn !== end; psn = psnAdd(psn, 1)) {
      const i = psn & SPAN_MASK;
      const state = this.state[i];
      if (state !== PACKET_OUTSTANDING && state !== PACKET_RESENT) continue;
      const sentNs = this.#sentNs[i];
      if (!isSentAfter(this.#newestNs, this.#newestPsn, sentNs, psn)) continue;
      const dueNs = sentNs + lossDelayNs;
      if (dueNs <= now) {
        this.markLost(psn);
        foundLost = true;
      } else if (dueNs < this.#reorderDueNs) this.#reorderDueNs = dueNs;
    }
    if (foundLost && this.#recoveryEnd < 0) this.#recoveryEnd = next;
    return foundLost;
  }
}

/** RFC 8985 §6.1, RACK_sent_after: the later one, of two at the same time the one with the later PSN. */
function isSentAfter(oneNs: number, onePsn: number, otherNs: number, otherPsn: number): boolean {
  return oneNs > otherNs || (oneNs === otherNs && psnDiff(onePsn, otherPsn) > 0);
}

export const rack = defineRecovery({
  name: 'rack',
  summary: 'selective repeat that detects losses by time and probes tails (RFC 8985), for networks that reorder',
  parameters: RACK_TABLE,
  usesSack: true,
  efficiency: selectiveRepeat.efficiency!,
  sender: (parameters) => new RackSender(parameters),
  receiver: () => new SelectiveRepeatReceiver(),
});
