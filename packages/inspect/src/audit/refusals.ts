/**
 * What a responder must and must not refuse (rules 24, 44, 68): each certain fault of a requester is noted and compared
 * with the answers. An ACK covers everything up to its PSN (IBTA vol. 1 §9.7.5.1.2), so one past an unrepaired fault
 * means that the responder accepted it.
 */

import {
  NAK_INVALID_REQUEST,
  NAK_PSN_SEQUENCE,
  NAK_REMOTE_ACCESS,
  OP_READ_REQUEST,
  OP_WRITE,
  PLACE_ONLY,
  type RocePacket,
  SYNDROME_KIND_ACK,
  syndromeKind,
  syndromeName,
} from 'rocev2/internal/packet';
import type { Judge } from './judge.js';

const EMPTIES_MAX = 64;
const NEVER = Number.POSITIVE_INFINITY;

interface Fault {
  readonly position: number;
  readonly packet: number;
}

interface Empty extends Fault {
  readonly kind: number;
}

export class Refusals {
  #misordered: Fault | undefined;
  #skipped: Fault | undefined;
  readonly #empties: Empty[] = [];
  /** Position of the first READ and WRITE with bytes: once it is acknowledged, such requests are allowed. */
  readonly #allowedFrom = new Map<number, number>();

  misordered(position: number, judge: Judge): void {
    this.#misordered ??= { position, packet: judge.packet };
  }

  skipped(position: number, judge: Judge): void {
    this.#skipped ??= { position, packet: judge.packet };
  }

  begun(packet: RocePacket, position: number, judge: Judge): void {
    const { kind, place } = packet.info;
    if (packet.dmaLength > 0) {
      if (!this.#allowedFrom.has(kind)) this.#allowedFrom.set(kind, position);
    } else if (kind === OP_READ_REQUEST || place === PLACE_ONLY) {
      if (this.#empties.length === EMPTIES_MAX) this.#empties.shift();
      this.#empties.push({ position, kind, packet: judge.packet });
    }
  }

  /** Something was retransmitted: perhaps in another form than before, so that the fault may be mended. */
  sentAgain(position: number): void {
    if (this.#misordered !== undefined && position <= this.#misordered.position) this.#misordered = undefined;
    if (this.#skipped !== undefined && position <= this.#skipped.position) this.#skipped = undefined;
  }

  answered(syndrome: number, position: number, acknowledged: number, judge: Judge): void {
    if (this.#misordered !== undefined)
      this.#judgeMisordered(this.#misordered, syndrome, position, acknowledged, judge);
    if (this.#skipped !== undefined) this.#judgeSkipped(this.#skipped, syndrome, position, acknowledged, judge);
    if (this.#empties.length > 0) this.#judgeEmpties(syndrome, position, acknowledged, judge);
  }

  #judgeMisordered(fault: Fault, syndrome: number, position: number, acknowledged: number, judge: Judge): void {
    if (acknowledged < fault.position) {
      if (syndrome === NAK_INVALID_REQUEST && position === fault.position) {
        judge.pass(24);
        this.#misordered = undefined;
      }
      return;
    }
    const text = `${syndromeName(syndrome)} acknowledges packet ${fault.packet}, which is out of the order of its message; expected NAK 0x61`;
    judge.violation(24, text, fault.packet);
    this.#misordered = undefined;
  }

  #judgeSkipped(fault: Fault, syndrome: number, position: number, acknowledged: number, judge: Judge): void {
    if (acknowledged < fault.position) {
      if (syndrome === NAK_PSN_SEQUENCE && position === fault.position) {
        judge.pass(44);
        this.#skipped = undefined;
      }
      return;
    }
    const text = `${syndromeName(syndrome)} acknowledges PSNs that were left out before packet ${fault.packet}; expected NAK 0x60 for the first of them`;
    judge.violation(44, text, fault.packet);
    this.#skipped = undefined;
  }

  #judgeEmpties(syndrome: number, position: number, acknowledged: number, judge: Judge): void {
    const isRefusal = syndrome === NAK_REMOTE_ACCESS;
    while (this.#empties.length > 0 && this.#empties[0].position <= acknowledged) {
      this.#empties.shift();
      if (syndromeKind(syndrome) === SYNDROME_KIND_ACK) judge.pass(68);
    }
    const empty = this.#empties[0];
    if (!isRefusal || empty === undefined || empty.position !== position) return;
    this.#empties.shift();
    const what = empty.kind === OP_WRITE ? 'WRITE' : 'READ';
    const text = `NAK 0x62 refuses the ${what} of packet ${empty.packet}, which has no bytes: its R_Key is not to be checked`;
    // A responder may answer so, too, where the queue pair allows none at all.
    if ((this.#allowedFrom.get(empty.kind) ?? NEVER) <= acknowledged) judge.violation(68, text, empty.packet);
    else judge.cannotTell(68, `${text}; perhaps the queue pair allows no ${what}`, empty.packet);
  }
}
