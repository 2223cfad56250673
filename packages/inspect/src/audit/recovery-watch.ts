/**
 * What a requester does after NAKs (rules 47 to 49, 60), and how long it takes. Positions are PSNs without wrap. A
 * captured NAK may have been lost later, so resuming at an older PSN is no fault; skipping the PSN that a NAK names and
 * sending what follows is one.
 */

import { PLACE_FIRST } from 'rocev2/internal/packet';
import type { RuleReporter } from './rule-reporter.js';

/**
 * Packets in a row behind the missing one that are retransmitted without it. Copies that a network makes late do not
 * come in such a row.
 */
const ROW = 3;
const NONE = -1;

interface OpenNak {
  readonly position: number;
  readonly packet: number;
  readonly timeNs: number;
  beyond: number;
  row: number;
  hasHole: boolean;
}

export class RecoveryWatch {
  #nak: OpenNak | undefined;
  /** Newest position that a NAK has asked for: it acknowledges all before it. */
  #newestNak = NONE;
  #runStart = NONE;
  #runEnd = NONE;
  /** A second NAK for `#runStart` came before later packets were retransmitted. */
  #secondNak = NONE;
  #resumed = NONE;
  #notReady: { readonly position: number; isFollowed: boolean; hasNak: boolean } | undefined;

  nak(position: number, timeNs: number, reporter: RuleReporter): void {
    if (this.#notReady?.position === position) this.#notReady.hasNak = true;
    if (position < this.#newestNak) return; // The network has let a newer one overtake it.
    this.#newestNak = position;
    if (position >= this.#runStart && position <= this.#runEnd) {
      if (position === this.#runStart && position === this.#runEnd) this.#secondNak = reporter.packet;
      return;
    }
    this.#nak = { position, packet: reporter.packet, timeNs, beyond: NONE, row: 0, hasHole: false };
  }

  /** All up to this position has arrived: what a NAK missed was only late. */
  acknowledged(position: number): void {
    if (this.#nak !== undefined && this.#nak.position <= position) this.#nak = undefined;
  }

  notReady(position: number): void {
    this.#notReady = { position, isFollowed: false, hasNak: false };
  }

  sentNew(position: number, idFollows: boolean, reporter: RuleReporter): void {
    if (this.#nak !== undefined && !idFollows) this.#nak.hasHole = true;
    if (this.#notReady !== undefined && position > this.#notReady.position) this.#notReady.isFollowed = true;
    this.#classify(position, true, reporter);
    this.#runStart = NONE;
    this.#runEnd = NONE;
    this.#secondNak = NONE;
  }

  sentAgain(position: number, timeNs: number, seen: SentAgain, reporter: RuleReporter): void {
    this.#tellNotReady(position, reporter);
    this.#classify(position, false, reporter);
    if (this.#nak !== undefined) this.#checkResumption(this.#nak, position, timeNs, seen, reporter);
    else if (this.#secondNak !== NONE && position === this.#runStart) this.#checkSecond(seen.isCapturedHere, reporter);
    if (position === this.#runEnd + 1) this.#runEnd = position;
    else {
      this.#runStart = position;
      this.#runEnd = position;
    }
    this.#secondNak = NONE;
  }

  #checkResumption(
    nak: OpenNak,
    position: number,
    timeNs: number,
    { wasHole, place, isCapturedHere, idFollows }: SentAgain,
    reporter: RuleReporter,
  ): void {
    if (!idFollows) nak.hasHole = true;
    if (position === nak.position) {
      reporter.pass(47);
      reporter.measure('NAK reaction', timeNs - nak.timeNs);
      this.#nak = undefined;
      this.#resumed = position;
    } else if (position < nak.position) {
      this.#nak = undefined;
      reporter.choose(48, place === PLACE_FIRST ? 'from the start of a message (go-back-0)' : 'from before the NAK');
    } else if (!wasHole) {
      nak.row = position === nak.beyond + 1 ? nak.row + 1 : 1;
      nak.beyond = position;
      if (nak.row < ROW) return;
      const text = `packets behind the one that the NAK of packet ${nak.packet} asks for are sent again, and that one is not`;
      if (isCapturedHere || !nak.hasHole) reporter.violation(47, text, nak.packet);
      else reporter.cannotTell(47, `${text}, or was lost before the place of the capture`, nak.packet);
      this.#nak = undefined;
    }
  }

  #checkSecond(isCapturedHere: boolean, reporter: RuleReporter): void {
    const text = `goes back once more on the NAK of packet ${this.#secondNak}, which is about packets that were on their way`;
    if (isCapturedHere) reporter.violation(49, text, this.#secondNak);
    else reporter.cannotTell(49, `${text}, or the network made a copy`, this.#secondNak);
  }

  #classify(position: number, isNew: boolean, reporter: RuleReporter): void {
    const resumed = this.#resumed;
    if (resumed === NONE || position === resumed) return;
    this.#resumed = NONE;
    if (position === resumed + 1) {
      if (isNew) return;
      reporter.pass(49);
      reporter.choose(48, 'all from the missing packet on (go-back-N)');
    } else if (position > resumed) {
      reporter.pass(49);
      reporter.choose(48, 'the missing packet alone (selective repeat)');
    }
  }

  #tellNotReady(position: number, reporter: RuleReporter): void {
    if (this.#notReady?.position !== position) return;
    const { isFollowed, hasNak } = this.#notReady;
    this.#notReady = undefined;
    if (hasNak) reporter.choose(60, 'NAK 0x60 for packets after an RNR NAK');
    else if (isFollowed) reporter.choose(60, 'silence about packets after an RNR NAK');
  }
}

export interface SentAgain {
  readonly wasHole: boolean;
  readonly place: number;
  readonly isCapturedHere: boolean;
  /** The IP identification shows that no packet is missing before it. */
  readonly idFollows: boolean;
}
