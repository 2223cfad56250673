/**
 * Receiver-driven credits (Azure storage paper §4.1): a SEND may be posted only when the peer has posted a receive for it and said so. With
 * them no RNR NAK is ever sent; one would be a bug, not flow control.
 *
 * Counts are cumulative, modulo 2^32. Two rules keep two sides from waiting for each other for ever:
 *
 * - the last credit is only for a message that grants credits itself (MS-SMBD 3.1.5.1), the one before it only for such and for control
 *   messages: data never takes what is needed to keep the connection moving;
 * - receives that control messages used are granted again with the next message, not by a message of their own: otherwise two idle sides
 *   would thank each other for their thanks for ever.
 */

/** What a message is, as far as credits are concerned. */
export type MessageClass = 'data' | 'control';

/** The credits of one side: what it may send, and what it has granted. */
export class Credits {
  readonly #window: number;
  /** SENDs this side has posted, and may have posted. */
  #sent = 0;
  #peerLimit: number;
  /** Receives this side has ever posted, and the number the peer was last told. */
  #posted: number;
  #advertised = 0;
  /** Receives posted again since then after data: worth a message of their own. */
  #freedByData = 0;

  /** `window` receives are posted, at least 4. Until the peer has spoken it is known to have one: for the first message. */
  constructor(window: number) {
    this.#window = window;
    this.#posted = window;
    this.#peerLimit = 1;
  }

  /** SENDs that the peer has receives for. */
  get available(): number {
    return (this.#peerLimit - this.#sent) | 0;
  }

  /** Whether a message of this class may be sent now. */
  allows(what: MessageClass): boolean {
    const { available } = this;
    if (available <= 0) return false;
    const grants = this.#posted !== this.#advertised;
    if (available === 1) return grants && what === 'control';
    return what === 'control' || available > 2;
  }

  /** A message is sent; returns the limit to put into its header. */
  onSend(): number {
    this.#sent = (this.#sent + 1) >>> 0;
    this.#advertised = this.#posted;
    this.#freedByData = 0;
    return this.#posted;
  }

  /** The peer's header says so. False when it cannot be: a limit that goes back, or a window beyond all bounds. */
  onLimit(limit: number): boolean {
    const grown = (limit - this.#peerLimit) | 0;
    if (grown < 0 || grown > WINDOW_MAX) return false;
    this.#peerLimit = limit;
    return true;
  }

  /** A receive that a message of this class had used is posted again. */
  onRepost(after: MessageClass): void {
    this.#posted = (this.#posted + 1) >>> 0;
    if (after === 'data') this.#freedByData++;
  }

  /** So many free receives are unknown to the peer that it has to be told at once; never for one alone, which a grant itself uses. */
  get grantDue(): boolean {
    return (this.#posted - this.#advertised) >>> 0 >= Math.max(2, this.#window >> 2);
  }

  /** Data was consumed since the last message: the peer has to be told before long. */
  get grantWanted(): boolean {
    return this.#freedByData > 0;
  }
}

/** No peer grants more at once. */
const WINDOW_MAX = 1024;
