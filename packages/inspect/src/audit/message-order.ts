/**
 * Rules on how messages become packets (23, 25 to 27, 29, 32), over the requests of one direction that are sent for the
 * first time and follow each other without a hole.
 */

import {
  OP_SEND,
  OP_WRITE,
  PATH_MTUS,
  PLACE_FIRST,
  PLACE_LAST,
  PLACE_MIDDLE,
  PLACE_ONLY,
  type RocePacket,
} from 'rocev2/internal/packet';
import type { RuleReporter } from './rule-reporter.js';

const NO_MESSAGE = 0;
const UNKNOWN = -1;
const MTU_MAX = 4096;

export class MessageOrder {
  /** Path MTU in bytes; 0 while it is not known. */
  mtu = 0;
  isBroken = false;
  #open = UNKNOWN;
  #writeBytes = 0;
  #arrivedBytes = 0;

  forget(): void {
    this.#open = UNKNOWN;
  }

  begin(): void {
    this.#open = NO_MESSAGE;
  }

  take(packet: RocePacket, reporter: RuleReporter): boolean {
    const { place, kind, name } = packet.info;
    const isMessage = kind === OP_SEND || kind === OP_WRITE;
    const continues = isMessage && (place === PLACE_MIDDLE || place === PLACE_LAST);
    const expected = continues ? kind : NO_MESSAGE;
    this.isBroken = this.#open !== UNKNOWN && this.#open !== expected;
    if (this.#open !== UNKNOWN) {
      if (this.#open === expected) reporter.pass(23);
      else
        reporter.violation(
          23,
          `${name} ${continues ? 'continues no message of its kind' : `begins inside a ${kindName(this.#open)}`}`,
        );
    }
    const follows = this.#open === expected;
    if (!isMessage) {
      this.#open = NO_MESSAGE;
      return true;
    }
    this.#checkLength(packet, reporter);
    if (kind === OP_WRITE) this.#countWrite(packet, follows, reporter);
    const isLast = place === PLACE_LAST || place === PLACE_ONLY;
    if (isLast) this.#open = NO_MESSAGE;
    else if (!continues || this.#open !== UNKNOWN) this.#open = kind;
    return isLast;
  }

  #checkLength({ info, payloadBytes }: RocePacket, reporter: RuleReporter): void {
    const limit = this.mtu || MTU_MAX;
    if (info.place === PLACE_FIRST || info.place === PLACE_MIDDLE) {
      if (!isPathMtu(payloadBytes)) {
        reporter.violation(
          25,
          `${info.name} carries ${payloadBytes} bytes; expected the path MTU${this.mtu === 0 ? '' : ` ${this.mtu}`}`,
        );
        return;
      }
      reporter.pass(25);
      if (this.mtu === 0) this.mtu = payloadBytes;
      else if (this.mtu === payloadBytes) reporter.pass(32);
      else
        reporter.violation(
          32,
          `${info.name} carries ${payloadBytes} bytes; the path MTU of the connection is ${this.mtu}`,
        );
    } else if (info.place === PLACE_LAST) {
      if (payloadBytes === 0 || payloadBytes > limit) {
        reporter.violation(26, `${info.name} carries ${payloadBytes} bytes; expected 1 to ${limit}`);
      } else reporter.pass(26);
    } else if (payloadBytes > limit) {
      reporter.violation(27, `${info.name} carries ${payloadBytes} bytes; expected at most ${limit}`);
    } else reporter.pass(27);
  }

  #countWrite({ info, payloadBytes, dmaLength }: RocePacket, follows: boolean, reporter: RuleReporter): void {
    if (info.place === PLACE_FIRST || info.place === PLACE_ONLY) {
      this.#writeBytes = dmaLength;
      this.#arrivedBytes = 0;
    } else if (!follows) return;
    this.#arrivedBytes += payloadBytes;
    if (info.place !== PLACE_LAST && info.place !== PLACE_ONLY) return;
    if (this.#arrivedBytes === this.#writeBytes) reporter.pass(29);
    else reporter.violation(29, `a WRITE ends after ${this.#arrivedBytes} bytes; its RETH says ${this.#writeBytes}`);
  }
}

export function isPathMtu(bytes: number): boolean {
  return (PATH_MTUS as readonly number[]).includes(bytes);
}

function kindName(kind: number): string {
  return kind === OP_SEND ? 'SEND' : 'WRITE';
}
