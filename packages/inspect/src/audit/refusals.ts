/**
 * What a responder has to refuse, and what it must not (rules 24, 44, 68). Somebody has to send what is wrong first, so each fault of a requester that is
 * certain is noted here, and the answers are compared with it. Positions are PSNs counted on without wrap.
 *
 * An ACK says that everything up to its PSN was taken (IBTA vol. 1 §9.7.5.1.2). If a fault stands there, and nothing was sent in its place since, the
 * responder has taken what it had to refuse.
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

/** Requests of no bytes that are remembered. */
const EMPTIES_MAX = 64;
const NEVER = Number.POSITIVE_INFINITY;

/** One request that is certainly wrong. */
interface Fault {
  readonly position: number;
  /** Number of the packet that shows it. */
  readonly packet: number;
}

/** A READ or WRITE of no bytes. */
interface Empty extends Fault {
  /** OP_READ_REQUEST or OP_WRITE. */
  readonly kind: number;
}

/** Of the requests of one direction. */
export class Refusals {
  /** The oldest packet out of the order of its message. */
  #misordered: Fault | undefined;
  /** The oldest PSN that was left out for certain. */
  #skipped: Fault | undefined;
  readonly #empties: Empty[] = [];
  /** Position of the first READ and WRITE with bytes: once it is acknowledged, such requests are allowed. */
  readonly #allowedFrom = new Map<number, number>();

  /** The packet in hand, at `position`, continues or begins a message where it cannot. */
  misordered(position: number, judge: Judge): void {
    this.#misordered ??= { position, packet: judge.packet };
  }

  /** The requester has left out `position`, as the packet in hand proves. */
  skipped(position: number, judge: Judge): void {
    this.#skipped ??= { position, packet: judge.packet };
  }

  /** A new request that begins a READ or WRITE. */
  begun(packet: RocePacket, position: number, judge: Judge): void {
    const { kind, place } = packet.info;
    if (packet.dmaLength > 0) {
      if (!this.#allowedFrom.has(kind)) this.#allowedFrom.set(kind, position);
    } else if (kind === OP_READ_REQUEST || place === PLACE_ONLY) {
      if (this.#empties.length === EMPTIES_MAX) this.#empties.shift();
      this.#empties.push({ position, kind, packet: judge.packet });
    }
  }

  /** Something was sent again: perhaps in another form than before, so that the fault may be mended. */
  sentAgain(position: number): void {
    if (this.#misordered !== undefined && position <= this.#misordered.position) this.#misordered = undefined;
    if (this.#skipped !== undefined && position <= this.#skipped.position) this.#skipped = undefined;
  }

  /** An answer with AETH that acknowledges everything up to `acknowledged`; `position` is that of its PSN. */
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
