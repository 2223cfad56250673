import { type Clock, NS_PER_MS, RoceError, WaitDeadline, WaitList, type WaitOptions } from 'rocev2/internal/core';
import { decodeMessage, messageAt, type RingSizes, wordAt } from './ring-layout.js';
import { CLAIMED, FILLED, freeSlot, producerOf, stateOf, ticketOf } from './ring-word.js';
import { WORD_BYTES } from './words.js';

/** Poll interval of a waiting consumer that no producer wakes. */
const LOOK_NS = 10 * NS_PER_MS;

export interface Producers {
  isThere(producer: number): boolean;
  expel(producer: number): void;
}

export interface ConsumerInit extends RingSizes {
  readonly memory: Buffer;
  readonly clock: Clock;
  readonly producers: Producers;
  readonly writeTimeoutNs: number;
}

/** Takes messages out of a ring, in the order of their tickets; made by `ring` of an owner. */
export class RingConsumer {
  readonly #init: ConsumerInit;
  readonly #words: BigUint64Array;
  readonly #waiting = new WaitList<Buffer>();
  #head = 0n;
  #skipped = 0;
  #slow = { word: 0n, sinceNs: 0 };
  #stopTimer: (() => void) | undefined;
  #isClosed = false;

  /** @internal */
  constructor(init: ConsumerInit) {
    const { memory, slots } = init;
    this.#init = init;
    this.#words = new BigUint64Array(memory.buffer, memory.byteOffset, memory.length / WORD_BYTES);
    for (let slot = 0; slot < slots; slot++) this.#store(wordAt(slot), freeSlot(BigInt(slot)));
  }

  /** Messages that were lost because their producers died, or took too long, while they wrote them. */
  get skipped(): number {
    return this.#skipped;
  }

  /**
   * The next message; the bytes are the caller's. Rejects with ERR_ROCE_CLOSED at the end. A wait that ends early takes
   * nothing.
   */
  async next(options?: WaitOptions): Promise<Buffer> {
    const deadline = WaitDeadline.of('next', options, this.#init.clock);
    if (this.#isClosed) throw closed();
    const message = this.#waiting.size === 0 ? this.#take() : undefined;
    if (message !== undefined) return message;
    const next = this.#waiting.wait(deadline, undefined);
    this.look();
    return next;
  }

  /** Every message until the owner ends. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    while (!this.#isClosed) {
      try {
        yield await this.next();
      } catch (error) {
        if (!this.#isClosed) throw error;
      }
    }
  }

  /** Gives messages that are there to those who wait, and says whether somebody still waits. @internal */
  look(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    if (!this.#serve()) return;
    this.#store(0, 1n);
    if (!this.#serve()) return; // A message may have come before its producer could see the waiter.
    const { clock } = this.#init;
    this.#stopTimer = clock.wakeAt(clock.nowNs() + LOOK_NS, () => this.look());
  }

  #serve(): boolean {
    while (this.#waiting.size > 0) {
      const message = this.#take();
      if (message === undefined) return true;
      this.#waiting.serve(() => message);
    }
    return false;
  }

  #take(): Buffer | undefined {
    const { slots, memory } = this.#init;
    for (;;) {
      const slot = Number(this.#head % BigInt(slots));
      const word = Atomics.load(this.#words, wordAt(slot) / WORD_BYTES);
      // The words are untrusted: any holder of the key can write them.
      if (ticketOf(word) !== this.#head) return undefined;
      if (stateOf(word) === FILLED) {
        const at = messageAt(this.#init, slot);
        const message = decodeMessage(memory.subarray(at, messageAt(this.#init, slot + 1)), this.#head);
        // The NIC writes in order, but another thread may observe its writes in another order.
        if (message === undefined && !this.#isStuck(word)) return undefined;
        this.#free(slot);
        if (message !== undefined) return message;
      } else if (stateOf(word) === CLAIMED && this.#isLost(word)) this.#free(slot);
      else return undefined;
      this.#skipped++;
    }
  }

  #isLost(word: bigint): boolean {
    const { producers } = this.#init;
    const producer = producerOf(word);
    if (!producers.isThere(producer)) return true;
    if (this.#isStuck(word)) producers.expel(producer);
    return false;
  }

  #isStuck(word: bigint): boolean {
    const nowNs = this.#init.clock.nowNs();
    if (this.#slow.word !== word) this.#slow = { word, sinceNs: nowNs };
    return nowNs - this.#slow.sinceNs > this.#init.writeTimeoutNs;
  }

  #free(slot: number): void {
    this.#store(wordAt(slot), freeSlot(this.#head + BigInt(this.#init.slots)));
    this.#head++;
  }

  #store(at: number, word: bigint): void {
    Atomics.store(this.#words, at / WORD_BYTES, word);
  }

  /** Those who wait hear that nothing will come. @internal */
  close(): void {
    this.#isClosed = true;
    this.#stopTimer?.();
    this.#waiting.failAll(closed());
  }
}

function closed(): RoceError {
  return new RoceError('ERR_ROCE_CLOSED', 'the owner of the ring is closed');
}
