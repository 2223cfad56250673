/**
 * How often a requester tries (rules 54, 59), where RDMA CM has told how often it may.
 *
 * Only what the requester has done for certain because its timer ran out, or because an RNR NAK asked for it, is counted: copies that the network makes
 * are closer together. Any answer begins the count of timeouts anew, progress that of RNR NAKs. An answer that the capture has missed would
 * do so, too, so that a violation needs a capture made at the requester.
 */

import { RNR_TIMER_NS } from 'rocev2/internal/packet';
import type { Judge } from './judge.js';
import { leastNs, timeoutOfCode } from './stamps.js';

/** Retries for ever. */
const RNR_FOR_EVER = 7;
const NOT_TOLD = -1;
const NONE = -1;

/** Of one requester. */
export class RetryCounts {
  /** Retries after timeouts; -1: not told. */
  retryCount = NOT_TOLD;
  /** Retries after RNR NAKs; 7: for ever; -1: not told. */
  rnrRetryCount = NOT_TOLD;
  /** The request that is sent again on timeouts, when it was sent last, and how often since the last answer. */
  #position = NONE;
  #sentNs = 0;
  #timeouts = 0;
  /** An answer has asked to send again: the next copy is no timeout's. */
  #isAsked = false;
  /** The request that finds no receive, and how often it was sent again for that. */
  #rnrPosition = NONE;
  #rnrRetries = 0;
  /** The RNR NAK that waits for the next copy: when it came, how long it asks to wait; 0: none. */
  #rnrNs = 0;
  #rnrWaitNs = 0;

  /** An answer of any kind has come. */
  answered(): void {
    this.#position = NONE;
  }

  /** An answer asks for something to be sent again. */
  asked(): void {
    this.#isAsked = true;
  }

  /** Everything up to the position is acknowledged. */
  progress(position: number): void {
    if (position >= this.#rnrPosition) this.#rnrPosition = NONE;
  }

  /** An RNR NAK for the request at `position`. */
  notReady(position: number, timerCode: number, timeNs: number): void {
    if (this.#rnrPosition !== position) {
      this.#rnrPosition = position;
      this.#rnrRetries = 0;
    }
    this.#rnrNs = timeNs;
    this.#rnrWaitNs = RNR_TIMER_NS[timerCode];
  }

  /** A request was sent again. */
  sentAgain(position: number, timeNs: number, waits: Waits, judge: Judge): void {
    this.#judgeRnr(position, timeNs, waits, judge);
    if (waits.timeoutCode > 0) this.#judgeTimeouts(position, timeNs, waits, judge);
  }

  #judgeTimeouts(position: number, timeNs: number, waits: Waits, judge: Judge): void {
    if (this.#position === NONE || position < this.#position) {
      this.#position = position;
      this.#timeouts = waits.isTimeout && !this.#isAsked ? 1 : 0;
      this.#sentNs = timeNs;
      this.#isAsked = false;
      return;
    }
    if (position > this.#position || timeNs - this.#sentNs < leastNs(timeoutOfCode(waits.timeoutCode))) return;
    this.#sentNs = timeNs;
    this.#timeouts++;
    if (this.retryCount === NOT_TOLD) return;
    if (this.#timeouts <= this.retryCount) {
      judge.pass(54);
      return;
    }
    const text = `sent again ${this.#timeouts} times on timeouts without an answer; RDMA CM says ${this.retryCount}`;
    this.#broken(54, text, waits, judge);
  }

  #judgeRnr(position: number, timeNs: number, waits: Waits, judge: Judge): void {
    if (this.#rnrPosition !== position || this.#rnrWaitNs === 0) return;
    const waitedNs = timeNs - this.#rnrNs;
    const isDue = waitedNs >= leastNs(this.#rnrWaitNs);
    this.#rnrWaitNs = 0;
    if (!isDue) return;
    this.#rnrRetries++;
    if (this.rnrRetryCount === NOT_TOLD || this.rnrRetryCount === RNR_FOR_EVER) return;
    if (this.#rnrRetries <= this.rnrRetryCount) {
      judge.pass(59);
      return;
    }
    const text = `sent again after ${this.#rnrRetries} RNR NAKs without progress; RDMA CM says ${this.rnrRetryCount}`;
    this.#broken(59, text, waits, judge);
  }

  #broken(rule: number, text: string, { isCapturedHere }: Waits, judge: Judge): void {
    if (isCapturedHere) judge.violation(rule, text);
    else judge.cannotTell(rule, `${text}; perhaps the capture has missed an answer`);
  }
}

/** What is known of a request that is sent again. */
export interface Waits {
  /** Code of the transport timeout; 0: not known, or none. */
  readonly timeoutCode: number;
  /** A timeout has passed since it was sent last, and nothing else is known that may have caused it. */
  readonly isTimeout: boolean;
  /** The capture was made at the requester. */
  readonly isCapturedHere: boolean;
}
