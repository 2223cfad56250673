/**
 * Receiver-driven credits (Azure storage paper §4.1): a SEND may be posted only when the peer has announced a receive
 * for it, so RNR NAKs never occur. Counts are cumulative, modulo 2^32. Two rules prevent deadlock: the last credit is
 * only for a message that grants credits (MS-SMBD 3.1.5.1), the one before it only for such and control messages; and
 * receives used by control messages are granted with the next message, not by a separate one, or two idle sides would
 * exchange grants indefinitely.
 */

export type MessageClass = 'data' | 'control';

export class SuCredits {
  readonly #window: number;
  #sent = 0;
  #peerLimit: number;
  #posted: number;
  #advertised = 0;
  #freedByData = 0;

  /** Until the peer has spoken it is known to have one: for the first message. */
  constructor(window: number) {
    this.#window = window;
    this.#posted = window;
    this.#peerLimit = 1;
  }

  get available(): number {
    return (this.#peerLimit - this.#sent) | 0;
  }

  allows(what: MessageClass): boolean {
    const { available } = this;
    if (available <= 0) return false;
    const grants = this.#posted !== this.#advertised;
    if (available === 1) return grants && what === 'control';
    return what === 'control' || available > 2;
  }

  onSend(): number {
    this.#sent = (this.#sent + 1) >>> 0;
    this.#advertised = this.#posted;
    this.#freedByData = 0;
    return this.#posted;
  }

  /** False when it cannot be: a limit that goes back, or a window beyond all bounds. */
  onLimit(limit: number): boolean {
    const grown = (limit - this.#peerLimit) | 0;
    if (grown < 0 || grown > WINDOW_MAX) return false;
    this.#peerLimit = limit;
    return true;
  }

  onRepost(after: MessageClass): void {
    this.#posted = (this.#posted + 1) >>> 0;
    if (after === 'data') this.#freedByData++;
  }

  /**
   * Whether enough free receives are unannounced to send a grant at once; never for one alone, which a grant itself
   * uses.
   */
  get grantDue(): boolean {
    return (this.#posted - this.#advertised) >>> 0 >= Math.max(2, this.#window >> 2);
  }

  get grantWanted(): boolean {
    return this.#freedByData > 0;
  }
}

/** No peer grants more at once. */
const WINDOW_MAX = 1024;
