/**
 * End-to-end flow control (rule 41): each ACK may say how many receives a responder has; code 31 means no limit (IBTA
 * vol. 1 §9.7.7.2).
 */

import { CREDIT_COUNT, OP_SEND, PLACE_FIRST, PLACE_ONLY, type RocePacket } from 'rocev2/internal/packet';
import type { RuleReporter } from './rule-reporter.js';

const CODE = 0x1f;
const CODE_UNLIMITED = 31;
const UNLIMITED = Number.POSITIVE_INFINITY;

export class EndToEndCredits {
  #limit = UNLIMITED;

  granted(syndrome: number, completed: number): void {
    const code = syndrome & CODE;
    if (code === CODE_UNLIMITED) this.#limit = UNLIMITED;
    else {
      const limit = completed + CREDIT_COUNT[code];
      this.#limit = this.#limit === UNLIMITED ? limit : Math.max(limit, this.#limit);
    }
  }

  /** One message beyond the limit may be sent, to ask for more. */
  check(
    { info: { kind, place, name } }: RocePacket,
    message: number,
    isCapturedHere: boolean,
    reporter: RuleReporter,
  ): void {
    if (this.#limit === UNLIMITED || kind !== OP_SEND || (place !== PLACE_FIRST && place !== PLACE_ONLY)) return;
    if (message <= this.#limit + 1) {
      reporter.pass(41);
      return;
    }
    const text = `${name} begins message ${message} of the connection; the responder has given credits for ${this.#limit}, and one more may ask`;
    if (isCapturedHere) reporter.violation(41, text);
    else reporter.cannotTell(41, `${text}; perhaps the capture has missed an acknowledgement`);
  }
}
