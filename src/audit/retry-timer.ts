/**
 * When a requester may send again: after a NAK, after the time of an RNR NAK, or when its transport timer has run out (rules 51, 52, 58).
 *
 * The capture may lie behind a place where packets are lost: an answer in it need not have reached the requester. What the requester has sent
 * itself is certain, so the timer is judged by when the oldest packet was sent last.
 */

import { RNR_TIMER_NS } from '../packet/aeth.js';
import type { Judge } from './judge.js';

const TIMEOUT_UNIT_NS = 4096;
/** A timer runs out between one timeout and so many (C9-140). */
const TIMEOUT_SPREAD = 4;
/** A driver stamps packets a little after it reads its clock. */
const STAMP_TOLERANCE_NS = 100_000;
const STAMP_TOLERANCE = 0.05;
/** Requests whose time is remembered, if the timeout is known. */
const REMEMBERED = 256;

/** The time that surely has to pass in the stamps of a capture. */
function leastNs(ns: number): number {
  return ns * (1 - STAMP_TOLERANCE) - STAMP_TOLERANCE_NS;
}

/** The time that may have passed at most. */
function mostNs(ns: number): number {
  return ns * (1 + STAMP_TOLERANCE) + STAMP_TOLERANCE_NS;
}

/** An RNR NAK that waits for its request. */
interface RnrNak {
  readonly position: number;
  readonly packet: number;
  readonly timeNs: number;
  readonly waitNs: number;
}

/** The waits of one requester. */
export class RetryTimer {
  /** Code of the transport timeout, 1..31; 0: not known, or none. */
  timeoutCode = 0;
  /** The capture was made at the requester: all answers in it have reached it. */
  isCapturedHere = false;
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

  /** An answer acknowledged more than those before it. */
  progress(timeNs: number): void {
    this.#isAsked = false;
    this.#activeNs = timeNs;
  }

  /** An answer asks to send again. */
  asked(): void {
    this.#isAsked = true;
  }

  /** The receiver was not ready for the request at `position`. */
  notReady(position: number, timerCode: number, timeNs: number, packet: number): void {
    this.#isAsked = true;
    this.#rnr = { position, packet, timeNs, waitNs: RNR_TIMER_NS[timerCode] };
  }

  /** A request was sent again. `mayBeCaused`: a READ is outstanding, or it may be a first copy that the capture missed. */
  sentAgain(position: number, timeNs: number, mayBeCaused: boolean, judge: Judge): void {
    const isEarly = this.#isBeforeTimeout(position, timeNs);
    const mayBeCopy = position === this.#previous; // that the network made
    const begins = !this.#isSendingAgain || position <= this.#previous;
    this.#judgeRnr(position, timeNs, isEarly && !mayBeCopy, judge);
    const waitedNs = timeNs - this.#activeNs;
    this.#activeNs = timeNs;
    this.#previous = position;
    this.#remember(position, timeNs);
    if (!begins) return;
    this.#isSendingAgain = true;
    if (!this.#isAsked && !mayBeCaused && !mayBeCopy && isEarly !== undefined) {
      if (!isEarly) {
        judge.pass(51);
        this.#judgeLate(waitedNs, judge);
      } else {
        const timeout = us(TIMEOUT_UNIT_NS * 2 ** this.timeoutCode);
        judge.violation(51, `sent again without a NAK before the transport timeout of ${timeout} was over`);
      }
    }
    this.#isAsked = false;
  }

  /** Nobody asked, so the timer has run out: within four timeouts since the last sign of life. */
  #judgeLate(waitedNs: number, judge: Judge): void {
    judge.measure('transport timeout', waitedNs);
    const timeoutNs = TIMEOUT_UNIT_NS * 2 ** this.timeoutCode;
    if (waitedNs <= mostNs(TIMEOUT_SPREAD * timeoutNs)) {
      judge.pass(52);
      return;
    }
    const text = `sent again after ${us(waitedNs)} of silence; expected within ${TIMEOUT_SPREAD} transport timeouts of ${us(timeoutNs)}`;
    if (this.isCapturedHere) judge.violation(52, text);
    else judge.cannotTell(52, `${text}; perhaps an earlier copy was lost before the place of the capture`);
  }

  #judgeRnr(position: number, timeNs: number, isEarly: boolean | undefined, judge: Judge): void {
    const rnr = this.#rnr;
    if (rnr?.position !== position) return;
    this.#rnr = undefined;
    const waitedNs = timeNs - rnr.timeNs;
    if (waitedNs >= leastNs(rnr.waitNs)) {
      judge.pass(58);
      return;
    }
    const text = `sent again ${us(waitedNs)} after the RNR NAK of packet ${rnr.packet}, which asks for ${us(rnr.waitNs)}`;
    if (isEarly === true || this.isCapturedHere) judge.violation(58, text, rnr.packet);
    else judge.cannotTell(58, `${text}; perhaps the NAK was lost behind the place of the capture`, rnr.packet);
  }

  /** Undefined where the timeout, or when the request was sent, is not known. */
  #isBeforeTimeout(position: number, timeNs: number): boolean | undefined {
    const slot = position % REMEMBERED;
    if (this.timeoutCode === 0 || this.#positions?.[slot] !== position) return undefined;
    return timeNs - this.#timesNs![slot] < leastNs(TIMEOUT_UNIT_NS * 2 ** this.timeoutCode);
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
