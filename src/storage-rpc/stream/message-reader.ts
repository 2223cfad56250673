/**
 * Cuts a byte stream into messages: a header of fixed size that says how much follows. A message is collected in a buffer of its own, so
 * that what it brings stays valid for as long as somebody holds it.
 */

/** Why bytes are not a message: the names under which they are counted. */
export type Malformed = 'too_short' | 'bad_magic' | 'bad_version' | 'bad_header_crc' | 'bad_field' | 'bad_length';

/** How to tell one message from the next. */
export interface MessageFormat<H> {
  /** Length of every header. */
  readonly headerBytes: number;
  /** The header, or why it is none. */
  readonly read: (bytes: Buffer) => H | Malformed;
  /** Bytes behind the header. */
  readonly bodyBytes: (header: H) => number;
}

/** Fed with pieces of a stream, it calls back for every message, and once for what is none; after that it reads nothing. */
export class MessageReader<H extends object> {
  readonly #format: MessageFormat<H>;
  readonly #onMessage: (header: H, body: Buffer) => void;
  readonly #onMalformed: (why: Malformed) => void;
  /** Reused: headers are read at once. */
  readonly #headerBytes: Buffer;
  /** Of the message whose body is being collected. */
  #header: H | undefined;
  /** What is being filled: header or body. */
  #target: Buffer;
  #filled = 0;
  #broken = false;

  constructor(
    format: MessageFormat<H>,
    onMessage: (header: H, body: Buffer) => void,
    onMalformed: (why: Malformed) => void,
  ) {
    this.#format = format;
    this.#onMessage = onMessage;
    this.#onMalformed = onMalformed;
    this.#headerBytes = Buffer.alloc(format.headerBytes);
    this.#target = this.#headerBytes;
  }

  /** Takes the next bytes of the stream. After a malformed header there is no telling where the next begins: the rest is ignored. */
  feed(bytes: Buffer): void {
    for (let at = 0; at < bytes.length && !this.#broken; ) {
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
      this.#onMalformed(header);
      return;
    }
    const bodyBytes = this.#format.bodyBytes(header);
    if (bodyBytes === 0) {
      this.#deliver(header, EMPTY);
      return;
    }
    this.#header = header;
    this.#target = Buffer.allocUnsafe(bodyBytes);
    this.#filled = 0;
  }

  #deliver(header: H, body: Buffer): void {
    this.#header = undefined;
    this.#target = this.#headerBytes;
    this.#filled = 0;
    this.#onMessage(header, body);
  }
}

const EMPTY = Buffer.alloc(0);
