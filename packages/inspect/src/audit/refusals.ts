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
import type { RuleReporter } from './rule-reporter.js';

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

  misordered(position: number, reporter: RuleReporter): void {
    this.#misordered ??= { position, packet: reporter.packet };
  }

  skipped(position: number, reporter: RuleReporter): void {
    this.#skipped ??= { position, packet: reporter.packet };
  }

  begun(packet: RocePacket, position: number, reporter: RuleReporter): void {
    const { kind, place } = packet.info;
    if (packet.dmaLength > 0) {
      if (!this.#allowedFrom.has(kind)) this.#allowedFrom.set(kind, position);
    } else if (kind === OP_READ_REQUEST || place === PLACE_ONLY) {
      if (this.#empties.length === EMPTIES_MAX) this.#empties.shift();
      this.#empties.push({ position, kind, packet: reporter.packet });
    }
  }

  /** Something was retransmitted: perhaps in another form than before, so that the fault may be mended. */
  sentAgain(position: number): void {
    if (this.#misordered !== undefined && position <= this.#misordered.position) this.#misordered = undefined;
    if (this.#skipped !== undefined && position <= this.#skipped.position) this.#skipped = undefined;
  }

  answered(syndrome: number, position: number, acknowledged: number, reporter: RuleReporter): void {
    if (this.#misordered !== undefined)
      this.#checkMisordered(this.#misordered, syndrome, position, acknowledged, reporter);
    if (this.#skipped !== undefined) this.#checkSkipped(this.#skipped, syndrome, position, acknowledged, reporter);
    if (this.#empties.length > 0) this.#checkEmpties(syndrome, position, acknowledged, reporter);
  }

  #checkMisordered(
    fault: Fault,
    syndrome: number,
    position: number,
    acknowledged: number,
    reporter: RuleReporter,
  ): void {
    if (acknowledged < fault.position) {
      if (syndrome === NAK_INVALID_REQUEST && position === fault.position) {
        reporter.pass(24);
        this.#misordered = undefined;
      }
      return;
    }
    const text = `${syndromeName(syndrome)} acknowledges packet ${fault.packet}, which is out of the order of its message; expected NAK 0x61`;
    reporter.violation(24, text, fault.packet);
    this.#misordered = undefined;
  }

  #checkSkipped(fault: Fault, syndrome: number, position: number, acknowledged: number, reporter: RuleReporter): void {
    if (acknowledged < fault.position) {
      if (syndrome === NAK_PSN_SEQUENCE && position === fault.position) {
        reporter.pass(44);
        this.#skipped = undefined;
      }
      return;
    }
    const text = `${syndromeName(syndrome)} acknowledges PSNs that were left out before packet ${fault.packet}; expected NAK 0x60 for the first of them`;
    reporter.violation(44, text, fault.packet);
    this.#skipped = undefined;
  }

  #checkEmpties(syndrome: number, position: number, acknowledged: number, reporter: RuleReporter): void {
    const isRefusal = syndrome === NAK_REMOTE_ACCESS;
    while (this.#empties.length > 0 && this.#empties[0].position <= acknowledged) {
      this.#empties.shift();
      if (syndromeKind(syndrome) === SYNDROME_KIND_ACK) reporter.pass(68);
    }
    const empty = this.#empties[0];
    if (!isRefusal || empty === undefined || empty.position !== position) return;
    this.#empties.shift();
    const what = empty.kind === OP_WRITE ? 'WRITE' : 'READ';
    const text = `NAK 0x62 refuses the ${what} of packet ${empty.packet}, which has no bytes: its R_Key is not to be checked`;
    // A responder may also answer so if the queue pair allows none at all.
    if ((this.#allowedFrom.get(empty.kind) ?? NEVER) <= acknowledged) reporter.violation(68, text, empty.packet);
    else reporter.cannotTell(68, `${text}; perhaps the queue pair allows no ${what}`, empty.packet);
  }
}
