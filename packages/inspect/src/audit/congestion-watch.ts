/** CNPs against the marks that cause them (rule 83), and their intervals by scope (rules 85, 87, 89). */

import type { Judge } from './judge.js';
import type { PacketView } from './sighting.js';

const CONGESTION_EXPERIENCED = 3;
const NEAR_NAK_NS = 20_000;
const PLACES_MAX = 65_536;
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
  takeCnp(seen: PacketView, place: CnpPlace, marks: Marks | undefined, judge: Judge): void {
    const { timeNs, interfaceId } = seen;
    this.#interval('CNP interval of a queue pair', `${interfaceId} q ${place.flow}`, timeNs, judge);
    this.#interval('CNP interval of a pair of addresses', `${interfaceId} r ${place.road}`, timeNs, judge);
    this.#interval('CNP interval of a sender', `${interfaceId} s ${place.sender}`, timeNs, judge);
    judge.choose(89, `CNPs with DSCP ${seen.dscp}`);
    if (marks === undefined) return;
    if (timeNs - marks.lastNakNs < NEAR_NAK_NS) judge.choose(87, 'a CNP together with a NAK');
    if (marks.unanswered > 0) judge.pass(83);
    else if (place.isCapturedHere) judge.violation(83, 'a CNP, and no packet has come with a mark since the last one');
    else judge.cannotTell(83, 'a CNP without a marked packet in the capture: the mark may have been set behind it');
    marks.unanswered = 0;
  }

  #interval(name: Parameters<Judge['measure']>[0], key: string, timeNs: number, judge: Judge): void {
    const last = this.#lastNs.get(key);
    if (last !== undefined) judge.measure(name, timeNs - last);
    if (last !== undefined || this.#lastNs.size < PLACES_MAX) this.#lastNs.set(key, timeNs);
  }
}

export interface CnpPlace {
  readonly flow: string;
  readonly road: string;
  readonly sender: string;
  readonly isCapturedHere: boolean;
}
