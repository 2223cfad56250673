import type { RoceError } from '../core/errors.js';
import { type WaitDeadline, WaitList } from '../core/wait.js';
import type { WorkCompletion } from '../verbs/completion-queue.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { QueuePair } from '../verbs/queue-pair.js';

/** A received message. */
export class Message implements Disposable {
  /** The bytes: a copy that stays, or a view of the receive buffer that is valid until {@link release}. */
  readonly data: Buffer;
  /** Four bytes the sender attached, as a big-endian number. */
  readonly immediate: number | undefined;
  #release: (() => void) | undefined;

  /** @internal */
  constructor(data: Buffer, immediate: number | undefined, release?: () => void) {
    this.data = data;
    this.immediate = immediate;
    this.#release = release;
  }

  /**
   * Releases the receive buffer of a view, so that the peer can send into it again. No effect on a copy. Safe to call
   * twice.
   */
  release(): void {
    const release = this.#release;
    this.#release = undefined;
    release?.();
  }

  /** The same as {@link release}. */
  [Symbol.dispose](): void {
    this.release();
  }
}

interface Asked {
  readonly view: boolean;
}

export class Inbox {
  readonly #qp: QueuePair;
  readonly #pool: MemoryRegion;
  readonly #messageBytesMax: number;
  readonly #arrived: WorkCompletion[] = [];
  #left: Message[] = [];
  readonly #waiting = new WaitList<Message, Asked>();
  #lent = 0;

  constructor(qp: QueuePair, pool: MemoryRegion, messageBytesMax: number) {
    this.#qp = qp;
    this.#pool = pool;
    this.#messageBytesMax = messageBytesMax;
  }

  get isEmpty(): boolean {
    return this.#arrived.length === 0;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  onReceive(wc: WorkCompletion): void {
    if (!this.#waiting.serve(({ view }) => this.#message(wc, view))) this.#arrived.push(wc);
  }

  take(asked: Asked): Message | undefined {
    const left = this.#left.shift();
    if (left !== undefined) return left;
    const wc = this.#arrived.shift();
    return wc === undefined ? undefined : this.#message(wc, asked.view);
  }

  wait(asked: Asked, deadline: WaitDeadline | undefined): Promise<Message> {
    return this.#waiting.wait(deadline, asked);
  }

  fail(error: RoceError): void {
    this.#waiting.failAll(error);
  }

  /**
   * Undelivered messages stay, as copies. Returns whether the memory of the receive buffers is free: not while a
   * program holds a view of it.
   */
  close(): boolean {
    this.#left.push(...this.#arrived.splice(0).map((wc) => this.#message(wc, false)));
    return this.#lent === 0;
  }

  #message(wc: WorkCompletion, view: boolean): Message {
    const offset = Number(wc.wrId) * this.#messageBytesMax;
    // A WRITE with immediate data consumes a receive but puts nothing into its buffer.
    const length = wc.opcode === 'RECV' ? wc.byteLen : 0;
    const bytes = this.#pool.bytes.subarray(offset, offset + length);
    if (view) {
      this.#lent++;
      return new Message(bytes, wc.immediate, () => {
        this.#lent--;
        this.#repost(wc);
      });
    }
    const message = new Message(Buffer.from(bytes), wc.immediate);
    this.#repost(wc);
    return message;
  }

  #repost({ wrId }: WorkCompletion): void {
    if (this.#qp.isClosed) return;
    const offset = Number(wrId) * this.#messageBytesMax;
    this.#qp.postRecv({ wrId, sges: [this.#pool.sge(offset, this.#messageBytesMax)] });
  }
}
