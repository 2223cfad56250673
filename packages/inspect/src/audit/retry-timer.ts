/**
 * When a requester may send again: after a NAK, after the time of an RNR NAK, or when its transport timer has run out (rules 51, 52, 58).
 *
 * The capture may lie behind a place where packets are lost: an answer in it need not have reached the requester. What the requester has sent
 * itself is certain, so the timer is judged by when the oldest packet was sent last.
 */

import { RNR_TIMER_NS } from 'rocev2/internal/packet';
import type { Judge } from './judge.js';
import { RetryCounts } from './retry-counts.js';
import { leastNs, mostNs, timeoutOfCode } from './stamps.js';

/** A timer runs out between one timeout and so many (C9-140). */
const TIMEOUT_SPREAD = 4;
/** Requests whose time is remembered, if the timeout is known. */
const REMEMBERED = 256;

/** An RNR NAK that waits for its request. */
interface RnrNak {
  readonly position: number;
  readonly packet: number;
  readonly timeNs: number;
  readonly waitNs: number;
}

/** What is known of a request that comes again. */
export interface Copy {
  /** A READ is outstanding, or the capture has not shown this position before. */
  readonly mayBeCaused: boolean;
  /** The IP identification shows that the requester has sent it just now: no earlier copy was late on the way. */
  readonly idFollows: boolean;
}

/** The waits of one requester. */
export class RetryTimer {
  /** Code of the transport timeout, 1..31; 0: not known, or none. */
  timeoutCode = 0;
  /** The capture was made at the requester: all answers in it have reached it. */
  isCapturedHere = false;
  /** How often it has done so. */
  readonly counts = new RetryCounts();
  /** When something was sent last, or an answer acknowledged more. */
  #activeNs = 0;
  /** A NAK, an RNR NAK or a SACK came since the last progress. */
  #isAsked = false;
  /** Position of the newest request, new or not. */
  #previous = -1;
  #isSendingAgain = false;
  #rnr: RnrNak | undefined;
  #positions: Float64Array | undefined;
  #timesNs: Float64Array | undefined;

  /** The request at `position` was sent for the first time. */
  sentNew(position: number, timeNs: number): void {
    this.#activeNs = timeNs;
    this.#isSendingAgain = false;
    this.#previous = position;
    this.#remember(position, timeNs);
  }

  /** An answer of any kind has come. */
  answered(): void {
    this.counts.answered();
  }

  /** An answer acknowledged more than those before it, up to `position`. */
  progress(position: number, timeNs: number): void {
    this.counts.progress(position);
    this.#isAsked = false;
    this.#activeNs = timeNs;
  }

  /** An answer asks to send again. */
  asked(): void {
    this.counts.asked();
    this.#isAsked = true;
  }

  /** The receiver was not ready for the request at `position`. */
  notReady(position: number, timerCode: number, timeNs: number, packet: number): void {
    this.#isAsked = true;
    this.counts.notReady(position, timerCode, timeNs);
    this.#rnr = { position, packet, timeNs, waitNs: RNR_TIMER_NS[timerCode] };
  }

  /** A request was sent again, or comes late. */
  sentAgain(position: number, timeNs: number, { mayBeCaused, idFollows }: Copy, judge: Judge): void {
    const { timeoutCode, isCapturedHere } = this;
    const isSentNow = idFollows || isCapturedHere;
    const isEarly = this.#isBeforeTimeout(position, timeNs);
    const mayBeCopy = position === this.#previous; // that the network made
    const begins = !this.#isSendingAgain || position <= this.#previous;
    this.#judgeRnr(position, timeNs, isEarly === true && !mayBeCopy && isSentNow, judge);
    const isTimeout = isEarly === false && !mayBeCaused;
    this.counts.sentAgain(position, timeNs, { isTimeout, timeoutCode, isCapturedHere }, judge);
    const waitedNs = timeNs - this.#activeNs;
    this.#activeNs = timeNs;
    this.#previous = position;
    this.#remember(position, timeNs);
    if (!begins) return;
    this.#isSendingAgain = true;
    // A copy that the network makes does not come a whole timeout later.
    if (!this.#isAsked && !mayBeCaused && isEarly !== undefined && !(mayBeCopy && isEarly)) {
      if (!isEarly) {
        judge.pass(51);
        this.#judgeLate(waitedNs, judge);
      } else {
        const timeout = us(timeoutOfCode(timeoutCode));
        const text = `sent again without a NAK before the transport timeout of ${timeout} was over`;
        if (isSentNow) judge.violation(51, text);
        else judge.cannotTell(51, `${text}; perhaps it is an earlier copy that was late on the way`);
      }
    }
    this.#isAsked = false;
  }

  /** Nobody asked, so the timer has run out: within four timeouts since the last sign of life. */
  #judgeLate(waitedNs: number, judge: Judge): void {
    judge.measure('transport timeout', waitedNs);
    const timeoutNs = timeoutOfCode(this.timeoutCode);
    if (waitedNs <= mostNs(TIMEOUT_SPREAD * timeoutNs)) {
      judge.pass(52);
      return;
    }
    const text = `sent again after ${us(waitedNs)} of silence; expected within ${TIMEOUT_SPREAD} transport timeouts of ${us(timeoutNs)}`;
    if (this.isCapturedHere) judge.violation(52, text);
    else judge.cannotTell(52, `${text}; perhaps an earlier copy was lost before the place of the capture`);
  }

  #judgeRnr(position: number, timeNs: number, isEarly: boolean, judge: Judge): void {
    const rnr = this.#rnr;
    if (rnr?.position !== position) return;
    this.#rnr = undefined;
    const waitedNs = timeNs - rnr.timeNs;
    if (waitedNs >= leastNs(rnr.waitNs)) {
      judge.pass(58);
      return;
    }
    const text = `sent again ${us(waitedNs)} after the RNR NAK of packet ${rnr.packet}, which asks for ${us(rnr.waitNs)}`;
    if (isEarly || this.isCapturedHere) judge.violation(58, text, rnr.packet);
    else
      judge.cannotTell(
        58,
        `${text}; perhaps the NAK was lost behind the place of the capture, or an earlier copy was late on the way`,
        rnr.packet,
      );
  }

  /** Undefined where the timeout, or when the request was sent, is not known. */
  #isBeforeTimeout(position: number, timeNs: number): boolean | undefined {
    const slot = position % REMEMBERED;
    if (this.timeoutCode === 0 || this.#positions?.[slot] !== position) return undefined;
    return timeNs - this.#timesNs![slot] < leastNs(timeoutOfCode(this.timeoutCode));
  }

  #remember(position: number, timeNs: number): void {
    if (this.timeoutCode === 0) return;
    this.#positions ??= new Float64Array(REMEMBERED).fill(-1);
    this.#timesNs ??= new Float64Array(REMEMBERED);
    const slot = position % REMEMBERED;
    this.#positions[slot] = position;
    this.#timesNs[slot] = timeNs;
  }
}

function us(ns: number): string {
  return ns < 1e6 ? `${Math.round(ns / 1e3)} us` : `${(ns / 1e6).toFixed(2)} ms`;
}
