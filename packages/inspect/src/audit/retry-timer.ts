/**
 * When a requester may retransmit: after a NAK, after an RNR NAK's time, or on its timer (rules 51, 52, 58). An answer
 * in the capture may not have reached the requester, so the timer is checked against the last transmission of the
 * oldest packet.
 */

import { RNR_TIMER_NS } from 'rocev2/internal/packet';
import { RetryCounts } from './retry-counts.js';
import type { RuleReporter } from './rule-reporter.js';
import { leastNs, mostNs, timeoutOfCode } from './stamps.js';

/** A timer runs out between one timeout and this many (C9-140). */
const TIMEOUT_SPREAD = 4;
const REMEMBERED = 256;

interface RnrNak {
  readonly position: number;
  readonly packet: number;
  readonly timeNs: number;
  readonly waitNs: number;
}

export interface Copy {
  readonly mayBeCaused: boolean;
  /** The IP identification shows that the requester has sent it just now: no earlier copy was late on the way. */
  readonly idFollows: boolean;
}

export class RetryTimer {
  timeoutCode = 0;
  /** The capture was made at the requester: all answers in it have reached it. */
  isCapturedHere = false;
  readonly counts = new RetryCounts();
  #activeNs = 0;
  #isAsked = false;
  #previous = -1;
  #isSendingAgain = false;
  #rnr: RnrNak | undefined;
  #positions: Float64Array | undefined;
  #timesNs: Float64Array | undefined;

  sentNew(position: number, timeNs: number): void {
    this.#activeNs = timeNs;
    this.#isSendingAgain = false;
    this.#previous = position;
    this.#remember(position, timeNs);
  }

  answered(): void {
    this.counts.answered();
  }

  progress(position: number, timeNs: number): void {
    this.counts.progress(position);
    this.#isAsked = false;
    this.#activeNs = timeNs;
  }

  asked(): void {
    this.counts.asked();
    this.#isAsked = true;
  }

  notReady(position: number, timerCode: number, timeNs: number, packet: number): void {
    this.#isAsked = true;
    this.counts.notReady(position, timerCode, timeNs);
    this.#rnr = { position, packet, timeNs, waitNs: RNR_TIMER_NS[timerCode] };
  }

  sentAgain(position: number, timeNs: number, { mayBeCaused, idFollows }: Copy, reporter: RuleReporter): void {
    const { timeoutCode, isCapturedHere } = this;
    const isSentNow = idFollows || isCapturedHere;
    const isEarly = this.#isBeforeTimeout(position, timeNs);
    const mayBeCopy = position === this.#previous;
    const begins = !this.#isSendingAgain || position <= this.#previous;
    this.#checkRnr(position, timeNs, isEarly === true && !mayBeCopy && isSentNow, reporter);
    const isTimeout = isEarly === false && !mayBeCaused;
    this.counts.sentAgain(position, timeNs, { isTimeout, timeoutCode, isCapturedHere }, reporter);
    const waitedNs = timeNs - this.#activeNs;
    this.#activeNs = timeNs;
    this.#previous = position;
    this.#remember(position, timeNs);
    if (!begins) return;
    this.#isSendingAgain = true;
    // A copy that the network makes does not come a whole timeout later.
    if (!this.#isAsked && !mayBeCaused && isEarly !== undefined && !(mayBeCopy && isEarly)) {
      if (!isEarly) {
        reporter.pass(51);
        this.#checkLate(waitedNs, reporter);
      } else {
        const timeout = us(timeoutOfCode(timeoutCode));
        const text = `sent again without a NAK before the transport timeout of ${timeout} was over`;
        if (isSentNow) reporter.violation(51, text);
        else reporter.cannotTell(51, `${text}; perhaps it is an earlier copy that was late on the way`);
      }
    }
    this.#isAsked = false;
  }

  /** Unsolicited, so the timer has fired: within four timeouts of the last sign of life. */
  #checkLate(waitedNs: number, reporter: RuleReporter): void {
    reporter.measure('transport timeout', waitedNs);
    const timeoutNs = timeoutOfCode(this.timeoutCode);
    if (waitedNs <= mostNs(TIMEOUT_SPREAD * timeoutNs)) {
      reporter.pass(52);
      return;
    }
    const text = `sent again after ${us(waitedNs)} of silence; expected within ${TIMEOUT_SPREAD} transport timeouts of ${us(timeoutNs)}`;
    if (this.isCapturedHere) reporter.violation(52, text);
    else reporter.cannotTell(52, `${text}; perhaps an earlier copy was lost before the place of the capture`);
  }

  #checkRnr(position: number, timeNs: number, isEarly: boolean, reporter: RuleReporter): void {
    const rnr = this.#rnr;
    if (rnr?.position !== position) return;
    this.#rnr = undefined;
    const waitedNs = timeNs - rnr.timeNs;
    if (waitedNs >= leastNs(rnr.waitNs)) {
      reporter.pass(58);
      return;
    }
    const text = `sent again ${us(waitedNs)} after the RNR NAK of packet ${rnr.packet}, which asks for ${us(rnr.waitNs)}`;
    if (isEarly || this.isCapturedHere) reporter.violation(58, text, rnr.packet);
    else
      reporter.cannotTell(
        58,
        `${text}; perhaps the NAK was lost behind the place of the capture, or an earlier copy was late on the way`,
        rnr.packet,
      );
  }

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
