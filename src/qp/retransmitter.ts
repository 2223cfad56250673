/**
 * Reliability of the requester (IBTA vol. 1 §9.7.5, §9.7.6): the retransmission timer, the retries, the wait for a
 * receiver that was not ready, and the reaction of the recovery scheme to a loss. It decides which packets are
 * retransmitted and when; the requester sends them.
 */

import { COUNTER } from '../memory/ring/counters.js';
import { STATUS_RETRY_EXC_ERR, STATUS_RNR_RETRY_EXC_ERR } from '../memory/ring/enums.js';
import { WAIT_RNR } from '../memory/ring/telemetry-page.js';
import { echoedEntropy, isEchoMarked } from '../packet/int-trailer.js';
import { psnAdd, psnDiff } from '../packet/psn.js';
import { LOSS_TIMEOUT, NO_REWIND, type SenderRecovery } from '../retransmit/recovery.js';
import { createSender, recoverySettings, STANDARD_RECOVERY, unpackRecovery } from '../retransmit/recovery-schemes.js';
import { ackTimeoutNs, growingTimeoutNs, RNR_RETRY_INFINITE, totalTimeoutNs } from '../retransmit/timers.js';
import type { AckRequestPolicy } from './ack-request-policy.js';
import { KIND_DATA, type Outstanding } from './outstanding.js';
import { createRttProbe, NO_RTT_PROBE, type RttProbe } from './rtt-probe.js';
import type { QueuePairParts } from './transport.js';
import type { WorkRequestCompletion } from './work-request-completion.js';

type Parts = Pick<QueuePairParts, 'host' | 'attributes' | 'link' | 'congestion' | 'scheduling' | 'probe'>;

const TX_RETRANSMITTED = COUNTER.tx_retransmitted;
const NEVER = Number.POSITIVE_INFINITY;

export class Retransmitter {
  readonly #parts: Parts;
  readonly #out: Outstanding;
  readonly #completion: WorkRequestCompletion;
  readonly #ackRequests: AckRequestPolicy;
  recovery: SenderRecovery = createSender(recoverySettings(STANDARD_RECOVERY));
  #timed: SenderRecovery | undefined;
  #ackDeadlineNs = NEVER;
  #ackStartNs = 0;
  #rnrDeadlineNs = NEVER;
  /**
   * Total of the timeouts since the last packet of the peer. Not taken from the clock: when that jumps because this
   * machine or process was stalled, the peer has not been silent.
   */
  #silentNs = 0;
  /**
   * Retries before RETRY_EXC_ERR, 0..7, of sequence NAKs alone where the queue pair has a total timeout; renewed by
   * every progress.
   */
  retriesLeft = 0;
  /** Waits before RNR_RETRY_EXC_ERR, 0..7; renewed by every progress. */
  rnrRetriesLeft = 0;
  /**
   * A go-back retry is running and nothing has been acknowledged since: further reports of the same gap must not
   * restart it.
   */
  #retrying = false;
  /**
   * The newest PSN in flight with an acknowledgement request. The retransmission timer runs only while one is
   * outstanding: packets without a request may stay unanswered for as long as a slow link takes to carry the next one
   * with it.
   */
  #ackReqPsn = 0;
  rtt: RttProbe = NO_RTT_PROBE;
  /** Everything before this PSN has been reported to the rate control as acknowledged. */
  #reportedPsn = 0;

  constructor(parts: Parts, out: Outstanding, completion: WorkRequestCompletion, ackRequests: AckRequestPolicy) {
    this.#parts = parts;
    this.#out = out;
    this.#completion = completion;
    this.#ackRequests = ackRequests;
  }

  /** A timeout has passed, and nothing has been acknowledged since. */
  get isSilent(): boolean {
    return this.#silentNs > 0;
  }

  /** While waiting for a receiver that was not ready nothing is sent. */
  get waitsForReceiver(): boolean {
    return this.#rnrDeadlineNs !== NEVER;
  }

  get deadlineNs(): number {
    const dueNs = Math.min(this.#ackDeadlineNs, this.#rnrDeadlineNs);
    return this.#timed === undefined || this.waitsForReceiver ? dueNs : Math.min(dueNs, this.#timed.dueNs);
  }

  start(): void {
    const { attributes } = this.#parts;
    this.recovery = createSender(unpackRecovery(attributes.recovery, attributes.recoveryParameters));
    this.recovery.reset(attributes.sqPsn);
    this.stopTimers();
    this.#timed = this.recovery.usesTime ? this.recovery : undefined;
    this.#grantRetries();
    this.#ackReqPsn = psnAdd(attributes.sqPsn, -1);
    this.#reportedPsn = attributes.sqPsn;
  }

  /** The rate control has changed: it samples round trips every `sampleBytes`. */
  measureRtt(sampleBytes: number): void {
    this.rtt = createRttProbe(sampleBytes);
  }

  stopTimers(): void {
    this.#ackDeadlineNs = NEVER;
    this.#rnrDeadlineNs = NEVER;
    this.#timed = undefined;
  }

  #grantRetries(): void {
    const { retryCnt, rnrRetry } = this.#parts.attributes;
    this.retriesLeft = retryCnt;
    this.rnrRetriesLeft = rnrRetry;
    this.#retrying = false;
    this.#silentNs = 0;
  }

  /** PSNs [psn, psn + psns) have been sent, the new ones not yet counted in `newPsn`. */
  onSent(psn: number, psns: number, now: number): void {
    const { newPsn } = this.#out;
    const isNew = psn === newPsn;
    if (this.#timed !== undefined) this.#timed.onSent(psn, psns, isNew ? psnAdd(psn, psns) : newPsn, now);
    if (isNew) return;
    this.#parts.probe.current.resent();
    this.#parts.host.counters[TX_RETRANSMITTED]++;
    for (let i = 0; i < psns; i++) this.recovery.onResent(psnAdd(psn, i), newPsn);
  }

  /** A packet has been sent that asks for an acknowledgement up to `psn`. */
  onAckReqSent(psn: number, now: number): void {
    if (psnDiff(psn, this.#ackReqPsn) > 0) this.#ackReqPsn = psn;
    if (this.#timed !== undefined) this.#await(this.#timed, now);
    if (this.#ackDeadlineNs === NEVER) this.#armAckTimer(now);
  }

  #await(timed: SenderRecovery, now: number): void {
    const before = timed.dueNs;
    timed.onAwaited(now);
    if (timed.dueNs < before) this.#deadlineChanged();
  }

  /** The window may have shrunk since then, so that no packet requested an acknowledgement: then the timer decides. */
  blocked(now: number): void {
    if (this.#ackDeadlineNs === NEVER && this.#out.inFlight > 0) this.#armAckTimer(now);
  }

  #armAckTimer(now: number): void {
    this.#ackStartNs = now;
    this.#ackDeadlineNs = now + this.#timeoutNs;
    this.#deadlineChanged();
  }

  #deadlineChanged(): void {
    const { congestion, scheduling } = this.#parts;
    scheduling.deadlineNs = Math.min(this.deadlineNs, congestion.control.notification.dueNs);
  }

  get #timeoutNs(): number {
    const { timeout, totalTimeout } = this.#parts.attributes;
    const baseNs = this.recovery.timeoutNs(ackTimeoutNs(timeout), this.#out.inFlight);
    return totalTimeout === 0 ? baseNs : growingTimeoutNs(baseNs, this.#silentNs, totalTimeoutNs(totalTimeout));
  }

  /** The total timeout has changed: the one that runs may have to end earlier. */
  totalTimeoutChanged(): void {
    if (this.#ackDeadlineNs === NEVER) return;
    this.#ackDeadlineNs = Math.min(this.#ackDeadlineNs, this.#ackStartNs + this.#timeoutNs);
    this.#deadlineChanged();
  }

  onAnswer(now: number): void {
    if (this.#timed !== undefined) this.#timed.onAnswer(now);
  }

  /**
   * The packet `psn` was trimmed, as the receiver reports, or the READ response with that PSN, which arrived trimmed.
   */
  trimmed(psn: number, now: number): void {
    const { unacked, newPsn } = this.#out;
    if (psnDiff(psn, unacked) < 0 || psnDiff(psn, newPsn) >= 0 || !this.recovery.onTrimmed(psn)) return;
    this.#parts.host.counters[COUNTER.trim_nak_received]++;
    // The sender of READ responses paces them.
    const isOurs = this.#out.kindOf(this.#out.find(psn, this.#out.head)) === KIND_DATA;
    if (isOurs) this.#parts.congestion.control.rate.onTrimmed(this.#parts.link.mtuBytes, now);
    this.rtt.cancel();
    this.#parts.scheduling.schedule();
  }

  /** An acknowledgement has a trailer, which ends at `end` of `b`. */
  onEcho(b: Uint8Array, end: number): void {
    if (!this.recovery.wantsEcho) return;
    const entropy = echoedEntropy(b, end);
    if (entropy >= 0) this.recovery.onEcho(entropy, isEchoMarked(b, end));
  }

  /**
   * Called after the completer has processed an answer, or when time has passed: a time-based scheme decides what is
   * lost.
   */
  detectLosses(now: number): void {
    const timed = this.#timed;
    if (timed === undefined) return;
    const { unacked, newPsn } = this.#out;
    if (timed.detectLosses(unacked, newPsn, this.#ackDeadlineNs !== NEVER, now)) {
      this.rtt.cancel();
      this.#parts.scheduling.schedule();
    }
    if (timed.dueNs !== NEVER) this.#deadlineChanged();
  }

  /** Completes what is done and grants new retries. */
  progress(now: number): void {
    const out = this.#out;
    out.advance(this.recovery);
    const rttNs = this.rtt.onProgress(out.unacked, now);
    const packets = psnDiff(out.unacked, this.#reportedPsn);
    if (packets > 0) {
      this.#parts.congestion.control.onAcknowledged(packets * this.#parts.link.mtuBytes, rttNs, now);
      this.#reportedPsn = out.unacked;
    }
    this.#grantRetries();
    this.#ackDeadlineNs = NEVER;
    if (psnDiff(this.#ackReqPsn, out.unacked) >= 0 && this.#rnrDeadlineNs === NEVER) this.#armAckTimer(now);
    this.#completion.completeDone();
    this.#parts.scheduling.schedule();
  }

  /** PSNs [first, end) are known to be missing, or were unanswered for a whole timeout. */
  lost(first: number, end: number, cause: number): void {
    const out = this.#out;
    const recovery = this.recovery;
    // A time-based scheme has yet to decide whether something is retransmitted.
    if (!recovery.usesTime || cause === LOSS_TIMEOUT) this.rtt.cancel();
    if (this.waitsForReceiver) return; // The resend after the wait covers it; an early one would only be refused again.
    const index = out.find(first, out.head);
    if (index < 0) return;
    const counts = recovery.goesBack || cause === LOSS_TIMEOUT;
    if (counts) {
      if (this.#retrying && cause !== LOSS_TIMEOUT) return;
      if (!this.#mayRetry(cause)) {
        this.#parts.host.counters[COUNTER.retry_exceeded_err]++;
        this.#completion.completeInError(STATUS_RETRY_EXC_ERR, out.unacked);
        return;
      }
      this.#retrying = true;
    }
    if (cause === LOSS_TIMEOUT) this.#ackRequests.force();
    const resume = recovery.onLoss(first, end, out.firstPsn[index & out.mask], out.newPsn, cause);
    if (resume !== NO_REWIND) this.#rewind(resume);
    this.#parts.scheduling.schedule();
  }

  /** Silence is measured in time if the queue pair has a total timeout; everything else is counted. */
  #mayRetry(cause: number): boolean {
    const { totalTimeout } = this.#parts.attributes;
    if (cause === LOSS_TIMEOUT && totalTimeout !== 0) return this.#silentNs < totalTimeoutNs(totalTimeout);
    if (this.retriesLeft === 0) return false;
    this.retriesLeft--;
    return true;
  }

  /** Only go-back-0 goes back before acknowledged PSNs. */
  #rewind(psn: number): void {
    const out = this.#out;
    const { counters } = this.#parts.host;
    const beyond = psnDiff(out.sendPsn, psn) - 1;
    if (beyond >= 0 && out.kind[out.find(psn, out.head) & out.mask] === KIND_DATA) {
      counters[COUNTER.retry_rewinds]++;
      counters[COUNTER.retry_rewind_packets] += beyond;
    }
    this.#goBack(psn);
  }

  /**
   * Retransmissions request an answer again: the timer runs from then, however long the queue pair waits to be
   * scheduled.
   */
  #goBack(psn: number): void {
    this.#ackDeadlineNs = NEVER;
    this.#out.goBack(psn);
    if (psnDiff(this.#ackReqPsn, psn) >= 0) this.#ackReqPsn = psnAdd(psn, -1);
  }

  /**
   * The receiver was not ready for `psn`, the oldest outstanding one, and requests a pause of `pauseNs`: everything
   * waits, then continues there. Out of retries, the work request fails; `syndrome` goes with its completion.
   */
  receiverNotReady(psn: number, pauseNs: number, syndrome: number, now: number): void {
    if (this.waitsForReceiver) return;
    if (this.#parts.attributes.rnrRetry !== RNR_RETRY_INFINITE) {
      if (this.rnrRetriesLeft === 0) {
        this.#parts.host.counters[COUNTER.rnr_nak_retry_err]++;
        this.#completion.completeInError(STATUS_RNR_RETRY_EXC_ERR, syndrome);
        return;
      }
      this.rnrRetriesLeft--;
    }
    this.rtt.cancel();
    this.#silentNs = 0;
    this.#rnrDeadlineNs = now + pauseNs;
    this.#ackDeadlineNs = NEVER;
    this.#parts.probe.current.waits(WAIT_RNR);
    if (this.recovery.goesBack) this.#goBack(psn);
    else this.recovery.onLoss(psn, psnAdd(psn, 1), psn, this.#out.newPsn, LOSS_TIMEOUT);
    this.#deadlineChanged();
  }

  /** {@link deadlineNs} has passed; harmless when called too early. */
  onDeadline(now: number): void {
    if (now >= this.#rnrDeadlineNs) {
      this.#rnrDeadlineNs = NEVER;
      this.#armAckTimer(now);
      this.#parts.scheduling.schedule();
    }
    if (!this.waitsForReceiver) this.detectLosses(now);
    if (now >= this.#ackDeadlineNs) {
      this.#ackDeadlineNs = NEVER;
      const out = this.#out;
      if (out.unacked === out.newPsn) return;
      const timeoutNs = this.#timeoutNs;
      this.#ackStartNs += this.#parts.host.schedulingDelayNs(this.#ackStartNs);
      if (now < this.#ackStartNs + timeoutNs) {
        // With more packets in flight the scheme waits longer; or they left late.
        this.#ackDeadlineNs = this.#ackStartNs + timeoutNs;
        return;
      }
      this.#parts.host.counters[COUNTER.local_ack_timeout_err]++;
      this.#parts.probe.current.timedOut(timeoutNs);
      this.#silentNs += timeoutNs;
      this.lost(out.unacked, out.newPsn, LOSS_TIMEOUT);
    }
  }
}
