/**
 * How often a requester tries (rules 54, 59), against the limits in RDMA CM. Only retries that certainly follow a
 * timeout or an RNR NAK count, because the network may duplicate packets. A violation needs a capture made at the
 * requester: a missed answer would reset the count.
 */

import { RNR_TIMER_NS } from 'rocev2/internal/packet';
import type { RuleReporter } from './rule-reporter.js';
import { leastNs, timeoutOfCode } from './stamps.js';

const RNR_FOR_EVER = 7;
const NOT_TOLD = -1;
const NONE = -1;

export class RetryCounts {
  retryCount = NOT_TOLD;
  rnrRetryCount = NOT_TOLD;
  #position = NONE;
  #sentNs = 0;
  #timeouts = 0;
  #isAsked = false;
  #rnrPosition = NONE;
  #rnrRetries = 0;
  /** The RNR NAK that waits for the next copy: when it came, how long it asks to wait; 0: none. */
  #rnrNs = 0;
  #rnrWaitNs = 0;

  answered(): void {
    this.#position = NONE;
  }

  asked(): void {
    this.#isAsked = true;
  }

  progress(position: number): void {
    if (position >= this.#rnrPosition) this.#rnrPosition = NONE;
  }

  notReady(position: number, timerCode: number, timeNs: number): void {
    if (this.#rnrPosition !== position) {
      this.#rnrPosition = position;
      this.#rnrRetries = 0;
    }
    this.#rnrNs = timeNs;
    this.#rnrWaitNs = RNR_TIMER_NS[timerCode];
  }

  sentAgain(position: number, timeNs: number, waits: Waits, reporter: RuleReporter): void {
    this.#checkRnr(position, timeNs, waits, reporter);
    if (waits.timeoutCode > 0) this.#checkTimeouts(position, timeNs, waits, reporter);
  }

  #checkTimeouts(position: number, timeNs: number, waits: Waits, reporter: RuleReporter): void {
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
      reporter.pass(54);
      return;
    }
    const text = `sent again ${this.#timeouts} times on timeouts without an answer; RDMA CM says ${this.retryCount}`;
    this.#broken(54, text, waits, reporter);
  }

  #checkRnr(position: number, timeNs: number, waits: Waits, reporter: RuleReporter): void {
    if (this.#rnrPosition !== position || this.#rnrWaitNs === 0) return;
    const waitedNs = timeNs - this.#rnrNs;
    const isDue = waitedNs >= leastNs(this.#rnrWaitNs);
    this.#rnrWaitNs = 0;
    if (!isDue) return;
    this.#rnrRetries++;
    if (this.rnrRetryCount === NOT_TOLD || this.rnrRetryCount === RNR_FOR_EVER) return;
    if (this.#rnrRetries <= this.rnrRetryCount) {
      reporter.pass(59);
      return;
    }
    const text = `sent again after ${this.#rnrRetries} RNR NAKs without progress; RDMA CM says ${this.rnrRetryCount}`;
    this.#broken(59, text, waits, reporter);
  }

  #broken(rule: number, text: string, { isCapturedHere }: Waits, reporter: RuleReporter): void {
    if (isCapturedHere) reporter.violation(rule, text);
    else reporter.cannotTell(rule, `${text}; perhaps the capture has missed an answer`);
  }
}

export interface Waits {
  readonly timeoutCode: number;
  /** A timeout has passed since it was sent last, and nothing else is known that may have caused it. */
  readonly isTimeout: boolean;
  readonly isCapturedHere: boolean;
}
