/** CNPs against the marks that cause them (rule 83), and their intervals by scope (rules 85, 87, 89). */

import type { PacketView } from 'rocev2/internal/capture';
import type { RuleReporter } from './rule-reporter.js';

const CONGESTION_EXPERIENCED = 3;
const NEAR_NAK_NS = 20_000;
const POSITIONS_MAX = 65_536;
const NEVER = Number.NEGATIVE_INFINITY;

export class Marks {
  unanswered = 0;
  lastNakNs = NEVER;

  take({ ecn }: PacketView): void {
    if (ecn === CONGESTION_EXPERIENCED) this.unanswered++;
  }
}

export class CongestionWatch {
  readonly #lastNs = new Map<string, number>();

  /**
   * Takes a CNP to a queue pair: `flow` is its direction, `road` its two addresses, `sender` who sent it, `marks` those
   * of the other direction (undefined: not known). `isCapturedHere`: the capture was made at the sender of the CNP.
   */
  takeCnp(seen: PacketView, place: CnpPlace, marks: Marks | undefined, reporter: RuleReporter): void {
    const { timeNs, interfaceId } = seen;
    this.#interval('CNP interval of a queue pair', `${interfaceId} q ${place.flow}`, timeNs, reporter);
    this.#interval('CNP interval of a pair of addresses', `${interfaceId} r ${place.road}`, timeNs, reporter);
    this.#interval('CNP interval of a sender', `${interfaceId} s ${place.sender}`, timeNs, reporter);
    reporter.choose(89, `CNPs with DSCP ${seen.dscp}`);
    if (marks === undefined) return;
    if (timeNs - marks.lastNakNs < NEAR_NAK_NS) reporter.choose(87, 'a CNP together with a NAK');
    if (marks.unanswered > 0) reporter.pass(83);
    else if (place.isCapturedHere)
      reporter.violation(83, 'a CNP, and no packet has come with a mark since the last one');
    else
      reporter.cannotTell(
        83,
        'a CNP without a marked packet in the capture: the mark may have been set after the capture point',
      );
    marks.unanswered = 0;
  }

  #interval(name: Parameters<RuleReporter['measure']>[0], key: string, timeNs: number, reporter: RuleReporter): void {
    const last = this.#lastNs.get(key);
    if (last !== undefined) reporter.measure(name, timeNs - last);
    if (last !== undefined || this.#lastNs.size < POSITIONS_MAX) this.#lastNs.set(key, timeNs);
  }
}

export interface CnpPlace {
  readonly flow: string;
  readonly road: string;
  readonly sender: string;
  readonly isCapturedHere: boolean;
}
