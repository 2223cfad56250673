/**
 * Each message is collected in a separate buffer, so that its data stays valid while it is referenced.
 */

export type Malformed = 'too_short' | 'bad_magic' | 'bad_version' | 'bad_header_crc' | 'bad_field' | 'bad_length';

export interface MessageFormat<H> {
  readonly headerBytes: number;
  readonly read: (bytes: Buffer) => H | Malformed;
  readonly bodyBytes: (header: H) => number;
}

export interface MessageEvents<H> {
  readonly onMessage: (header: H, body: Buffer) => void;
  readonly onMalformed: (why: Malformed) => void;
  /** Until then nothing is read. */
  readonly onBody?: (bytes: number, go: () => void) => void;
}

export class MessageReader<H extends object> {
  readonly #format: MessageFormat<H>;
  readonly #events: MessageEvents<H>;
  /** Reused: headers are read at once. */
  readonly #headerBytes: Buffer;
  #header: H | undefined;
  #target: Buffer;
  #filled = 0;
  #broken = false;
  #isWaiting = false;
  #held: Buffer[] = [];

  constructor(format: MessageFormat<H>, events: MessageEvents<H>) {
    this.#format = format;
    this.#events = events;
    this.#headerBytes = Buffer.alloc(format.headerBytes);
    this.#target = this.#headerBytes;
  }

  /** After a malformed header the next boundary is unknown: the rest is ignored. */
  feed(bytes: Buffer): void {
    for (let at = 0; at < bytes.length && !this.#broken; ) {
      if (this.#isWaiting) {
        this.#held.push(bytes.subarray(at));
        return;
      }
      const taken = Math.min(this.#target.length - this.#filled, bytes.length - at);
      bytes.copy(this.#target, this.#filled, at, at + taken);
      this.#filled += taken;
      at += taken;
      if (this.#filled < this.#target.length) return;
      if (this.#header === undefined) this.#onHeader();
      else this.#deliver(this.#header, this.#target);
    }
  }

  #onHeader(): void {
    const header = this.#format.read(this.#headerBytes);
    if (typeof header === 'string') {
      this.#broken = true;
      this.#events.onMalformed(header);
      return;
    }
    const bodyBytes = this.#format.bodyBytes(header);
    if (bodyBytes === 0) {
      this.#deliver(header, EMPTY);
      return;
    }
    this.#header = header;
    const { onBody } = this.#events;
    if (onBody === undefined) {
      this.#begin(bodyBytes);
      return;
    }
    this.#isWaiting = true;
    onBody(bodyBytes, () => this.#begin(bodyBytes));
  }

  #begin(bodyBytes: number): void {
    this.#target = Buffer.allocUnsafe(bodyBytes);
    this.#filled = 0;
    this.#isWaiting = false;
    for (const bytes of this.#held.splice(0)) this.feed(bytes);
  }

  #deliver(header: H, body: Buffer): void {
    this.#header = undefined;
    this.#target = this.#headerBytes;
    this.#filled = 0;
    this.#events.onMessage(header, body);
  }
}

const EMPTY = Buffer.alloc(0);
