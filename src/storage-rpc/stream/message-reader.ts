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

/** Who takes what is read. */
export interface MessageEvents<H> {
  /** Every message. */
  readonly onMessage: (header: H, body: Buffer) => void;
  /** Once, for what is none; after that nothing is read. */
  readonly onMalformed: (why: Malformed) => void;
  /** Calls `go`, at once or later, when there is memory for a body of so many bytes. Until then nothing is read. Default: at once. */
  readonly onBody?: (bytes: number, go: () => void) => void;
}

/** Fed with pieces of a stream, it calls back for every message. */
export class MessageReader<H extends object> {
  readonly #format: MessageFormat<H>;
  readonly #events: MessageEvents<H>;
  /** Reused: headers are read at once. */
  readonly #headerBytes: Buffer;
  /** Of the message whose body is being collected. */
  #header: H | undefined;
  /** What is being filled: header or body. */
  #target: Buffer;
  #filled = 0;
  #broken = false;
  /** There is no memory for a body yet. */
  #isWaiting = false;
  /** What came meanwhile. */
  #held: Buffer[] = [];

  constructor(format: MessageFormat<H>, events: MessageEvents<H>) {
    this.#format = format;
    this.#events = events;
    this.#headerBytes = Buffer.alloc(format.headerBytes);
    this.#target = this.#headerBytes;
  }

  /** Takes the next bytes of the stream. After a malformed header there is no telling where the next begins: the rest is ignored. */
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
