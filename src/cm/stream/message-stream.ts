/**
 * A byte stream in both directions over the messages of a connection. Credits bound what the peer may send to the
 * receives that were set aside.
 */

import { RoceError } from '../../core/errors.js';
import type { RdmaDevice } from '../../verbs/device.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import type { Message } from '../inbox.js';
import type { Operation } from '../operations.js';
import { printable } from '../printable.js';
import {
  CREDIT,
  DATA,
  decodeTerms,
  encodeReason,
  encodeTerms,
  FIN,
  FIN_ACK,
  immediateOf,
  malformed,
  OPEN,
  RESET,
  readImmediate,
  type Terms,
} from './stream-frame.js';

/** Receives that stay free for frames without data: OPEN, two CREDIT, FIN, FIN_ACK, RESET. */
const CONTROL_RECEIVES = 6;
const SEND_BYTES = 4 << 20;
/** How long the connection stays open for the reason of a reset to reach the peer. */
const RESET_GRACE_NS = 1e9;

interface Slot {
  readonly offset: number;
  readonly bytes: Buffer;
}

/** The connection as its stream uses it. */
export interface MessageCarrier {
  readonly device: RdmaDevice;
  readonly isClosed: boolean;
  readonly receives: { readonly receiveDepth: number; readonly messageBytesMax: number };
  claim(what: string): void;
  post(operation: Operation): Promise<void>;
  nextMessage(): Promise<Message>;
  registerScratch(bytes: number): Promise<MemoryRegion>;
  close(): Promise<void>;
}

export class MessageStream {
  onReadable: () => void = () => {};
  /** Undefined: this program has closed the connection, which is no error. */
  onFailure: (error: Error | undefined) => void = () => {};
  readonly #connection: MessageCarrier;
  readonly #own: Terms;
  #peer: Terms | undefined;
  #region: MemoryRegion | undefined;
  readonly #free: Slot[] = [];
  #credits = 0;
  #wake: (() => void) | undefined;
  readonly #held: Message[] = [];
  #charged = 0;
  #freed = 0;
  #isCrediting = false;
  #isDiscarding = false;
  #hasPeerEnded = false;
  #hasEnded = false;
  #isEndKnown = false;
  #farewell: Promise<void> | undefined;
  readonly #served: Promise<void>;
  #failure: Error | undefined;
  #closing: Promise<void> | undefined;

  constructor(connection: MessageCarrier) {
    const { receiveDepth, messageBytesMax } = connection.receives;
    if (receiveDepth < CONTROL_RECEIVES + 2 || messageBytesMax < 64) {
      throw new RoceError(
        'ERR_ROCE_LIMIT',
        `a stream needs ${CONTROL_RECEIVES + 2} receives of 64 bytes; this connection has ${receiveDepth} of ${messageBytesMax}`,
        'raise `receiveDepth` or `messageBytesMax`',
      );
    }
    connection.claim('a stream');
    this.#connection = connection;
    this.#own = { window: receiveDepth - CONTROL_RECEIVES, frameBytes: messageBytesMax };
    this.#post(OPEN, encodeTerms(this.#own)).catch((error: Error) => this.#fail(error));
    this.#served = this.#serve();
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  get isAtEnd(): boolean {
    return this.#hasPeerEnded && this.#held.length === 0;
  }

  take(): Buffer | undefined {
    const message = this.#held.shift();
    if (message === undefined) return undefined;
    const bytes = Buffer.from(message.data);
    this.#release(message);
    return bytes;
  }

  discard(): void {
    this.#isDiscarding = true;
    for (const message of this.#held.splice(0)) this.#release(message);
  }

  /** Resolves when all pieces have been copied: they may change then. One call at a time. */
  async write(pieces: readonly Uint8Array[]): Promise<void> {
    let slot: Slot | undefined;
    let filled = 0;
    const flush = () => {
      if (slot === undefined) return;
      this.#sendData(slot, filled);
      slot = undefined;
      filled = 0;
    };
    for (const piece of pieces) {
      for (let at = 0; at < piece.length; ) {
        slot ??= await this.#nextSlot();
        const count = Math.min(slot.bytes.length - filled, piece.length - at);
        slot.bytes.set(piece.subarray(at, at + count), filled);
        filled += count;
        at += count;
        if (filled === slot.bytes.length) flush();
      }
    }
    flush();
  }

  async end(): Promise<void> {
    while (this.#peer === undefined && this.#failure === undefined) await this.#change(); // It has no receives before.
    if (this.#failure !== undefined) throw this.#failure;
    this.#hasEnded = true;
    this.#post(FIN).catch((error: Error) => this.#fail(error));
    while (!this.#isEndKnown && this.#failure === undefined) await this.#change();
    if (this.#failure !== undefined) throw this.#failure;
  }

  close(error?: Error | null): Promise<void> {
    this.#closing ??= this.#close(error);
    return this.#closing;
  }

  async #close(error: Error | null | undefined): Promise<void> {
    const hasFailed = this.#failure !== undefined;
    this.#failure ??= error ?? new RoceError('ERR_ROCE_CLOSED', 'the stream is closed');
    this.#wake?.();
    this.discard();
    if (this.#isOver) await Promise.race([this.#farewell, this.#served]);
    else if (!hasFailed) await this.#reset(error?.message ?? 'the stream was destroyed');
    await this.#connection.close();
    if (this.#region !== undefined) this.#connection.device.scratch.give(this.#region.bytes);
  }

  get #isOver(): boolean {
    return this.#isEndKnown && this.#hasPeerEnded;
  }

  async #reset(reason: string): Promise<void> {
    const { clock } = this.#connection.device;
    await new Promise<void>((resolve) => {
      const cancel = clock.wakeAt(clock.nowNs() + RESET_GRACE_NS, resolve);
      const done = () => {
        cancel();
        resolve();
      };
      this.#post(RESET, encodeReason(reason)).then(done, done);
    });
  }

  #post(kind: number, body?: Buffer): Promise<void> {
    const credits = this.#freed;
    this.#freed = 0;
    this.#charged -= credits;
    return this.#connection.post({
      opcode: 'SEND_WITH_IMM',
      immediate: immediateOf(kind, credits),
      ...(body !== undefined && { inline: body }),
    });
  }

  async #nextSlot(): Promise<Slot> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      const slot = this.#credits > 0 ? this.#free.pop() : undefined;
      if (slot !== undefined) {
        this.#credits--;
        return slot;
      }
      await this.#change();
    }
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #sendData(slot: Slot, length: number): void {
    const credits = this.#freed;
    this.#freed = 0;
    this.#charged -= credits;
    const operation = {
      opcode: 'SEND_WITH_IMM',
      immediate: immediateOf(DATA, credits),
      sges: [this.#region!.sge(slot.offset, length)],
    } as const;
    this.#connection.post(operation).then(
      () => {
        this.#free.push(slot);
        this.#wake?.();
      },
      (error: Error) => this.#fail(error),
    );
  }

  async #serve(): Promise<void> {
    try {
      for (;;) await this.#onMessage(await this.#connection.nextMessage());
    } catch (error) {
      this.#fail((error as RoceError).code === 'ERR_ROCE_CLOSED' ? leftEarly(error) : (error as Error));
    }
  }

  async #onMessage(message: Message): Promise<void> {
    const { kind, credits } = readImmediate(message.immediate);
    if ((this.#peer === undefined) !== (kind === OPEN)) throw malformed(`frame ${kind} out of turn`);
    if (kind === OPEN) await this.#onOpen(decodeTerms(message.data));
    else this.#onCredits(credits);
    if (kind === DATA) {
      this.#onData(message);
      return;
    }
    if (kind === RESET) throw resetByPeer(message.data);
    message.release();
    if (kind === FIN) this.#onPeerEnd();
    else if (kind === FIN_ACK) this.#onEndKnown();
    else if (kind !== OPEN && kind !== CREDIT) throw malformed(`frame ${kind} is not known`);
  }

  async #onOpen(terms: Terms): Promise<void> {
    const frameBytes = Math.min(terms.frameBytes, SEND_BYTES / 2);
    const count = Math.min(terms.window, Math.floor(SEND_BYTES / frameBytes));
    this.#region = await this.#connection.registerScratch(count * frameBytes);
    for (let offset = 0; offset < count * frameBytes; offset += frameBytes) {
      this.#free.push({ offset, bytes: this.#region.bytes.subarray(offset, offset + frameBytes) });
    }
    this.#peer = terms;
    this.#credits = terms.window;
    this.#wake?.();
  }

  #onPeerEnd(): void {
    if (this.#hasPeerEnded) throw malformed('it ended twice');
    this.#hasPeerEnded = true;
    this.#farewell = this.#post(FIN_ACK).catch((error: Error) => this.#fail(error));
    this.onReadable();
  }

  #onEndKnown(): void {
    if (!this.#hasEnded || this.#isEndKnown) throw malformed('it acknowledges an end that there was not');
    this.#isEndKnown = true;
    this.#wake?.();
  }

  #onCredits(credits: number): void {
    if (credits === 0) return;
    this.#credits += credits;
    if (this.#credits > this.#peer!.window) throw malformed('it returned credits that it never had');
    this.#wake?.();
  }

  #onData(message: Message): void {
    if (this.#hasPeerEnded) throw malformed('it sent data after its end');
    if (++this.#charged > this.#own.window) throw malformed('it sent more than its credits allow');
    if (this.#isDiscarding || message.data.length === 0) this.#release(message);
    else {
      this.#held.push(message);
      this.onReadable();
    }
  }

  #release(message: Message): void {
    message.release();
    this.#freed++;
    this.#tellCredits();
  }

  /** Half a window at a time; the other half keeps the peer busy. At most one frame is in flight. */
  #tellCredits(): void {
    if (this.#isCrediting || this.#hasPeerEnded || this.#failure !== undefined) return;
    if (this.#freed < Math.max(1, this.#own.window >> 1)) return;
    this.#isCrediting = true;
    this.#post(CREDIT).then(
      () => {
        this.#isCrediting = false;
        this.#tellCredits();
      },
      (error: Error) => this.#fail(error),
    );
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined || this.#isOver) return;
    this.#failure = error;
    this.#wake?.();
    this.onFailure(this.#connection.isClosed ? undefined : error);
  }
}

function leftEarly(cause: unknown): RoceError {
  const message = 'the peer left before the end of its stream';
  return new RoceError('ERR_ROCE_CONNECT', message, 'the received data may be incomplete', { cause });
}

function resetByPeer(reason: Buffer): RoceError {
  return new RoceError('ERR_ROCE_CONNECT', `the peer destroyed the stream: ${printable(reason.toString())}`);
}
