import {
  type CancellationState,
  checkKind,
  RoceError,
  WaitDeadline,
  type WaitOptions,
  waitFor,
} from 'rocev2/internal/core';
import { Pauses } from './pause.js';
import { encodeMessage, messageAt, type RingSizes, wordAt } from './ring-layout.js';
import { CLAIMED, FILLED, FREE, freeSlot, slotOf, stateOf, ticketOf } from './ring-word.js';
import type { RemoteWords } from './words.js';

export interface RingPlace extends RingSizes {
  readonly words: RemoteWords;
  readonly offset: number;
  readonly producer: number;
  readonly wake: () => Promise<unknown>;
}

/**
 * A queue that many push into and its owner takes from. A push claims a slot by CMP_SWAP, writes the message, and marks
 * it filled: three round trips, independent of the owner's program, until all slots are full. Each message is taken at
 * most once; those of one producer in push order, if it waits for each. A producer that dies while writing loses this
 * message; the owner continues with the next. When the owner dies, every call rejects, and messages not taken are lost.
 */
export class RemoteRing {
  readonly #place: RingPlace;
  #next = 0n;

  /** @internal */
  constructor(place: RingPlace) {
    this.#place = place;
  }

  /** Bytes of the longest message. */
  get bytes(): number {
    return this.#place.bytes;
  }

  /**
   * Puts a message into the ring. Resolves when it is there, not when it is taken. Waits while the ring is full.
   * Rejects with ERR_ROCE_OUT_OF_RANGE for a message that is too long. If the wait ends early, the message may arrive
   * all the same; after the end of the connection that is unknown.
   */
  async push(data: Uint8Array, options?: WaitOptions): Promise<void> {
    const { words, bytes } = this.#place;
    checkKind('a message', data, data instanceof Uint8Array, 'bytes: a Buffer or Uint8Array');
    if (data.length > bytes) {
      const text = `a message of ${data.length} bytes is longer than the ${bytes} that the ring takes`;
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', text, 'let the owner raise `bytes`');
    }
    const deadline = WaitDeadline.of('push', options, words.clock);
    const message = Buffer.from(data); // The caller may change its bytes after this call.
    return waitFor(deadline, (cancellation) => this.#push(message, cancellation));
  }

  async #push(message: Buffer, cancellation: CancellationState): Promise<void> {
    const { words, offset, slots, producer, wake } = this.#place;
    const ticket = await this.#claim(cancellation);
    const slot = Number(ticket % BigInt(slots));
    await words.write(offset + messageAt(this.#place, slot), encodeMessage(message, ticket));
    const claimed = slotOf(ticket, producer, CLAIMED);
    const [found, waits] = await Promise.all([
      words.compareSwap(offset + wordAt(slot), claimed, slotOf(ticket, producer, FILLED)),
      words.compareSwap(offset, 1n, 0n),
    ]);
    if (waits === 1n) wake().catch(() => {}); // The consumer polls anyway, a little later.
    if (found !== claimed) throw new RoceError('ERR_ROCE_FENCED', 'the owner has given the slot to another producer');
  }

  async #claim(cancellation: CancellationState): Promise<bigint> {
    const { words, offset, slots, producer } = this.#place;
    const pauses = new Pauses(words.clock, cancellation);
    for (let ticket: bigint | undefined = this.#next; ; pauses.check()) {
      if (ticket !== undefined) {
        const at = offset + wordAt(Number(ticket % BigInt(slots)));
        const free = freeSlot(ticket);
        if ((await words.compareSwap(at, free, slotOf(ticket, producer, CLAIMED))) === free) {
          this.#next = ticket + 1n;
          return ticket;
        }
      } else await pauses.next();
      ticket = this.#firstFree(await words.read(offset + wordAt(0), slots));
    }
  }

  /**
   * Tickets are claimed without gaps, so the smallest one of the free slots is next. The words were not read at one
   * time, so the slot before must show that its ticket was claimed. Undefined: the ring is full, or it changed.
   */
  #firstFree(found: readonly bigint[]): bigint | undefined {
    const tickets = found.filter((word) => stateOf(word) === FREE).map(ticketOf);
    if (tickets.length === 0) return undefined;
    const first = tickets.reduce((least, ticket) => (ticket < least ? ticket : least));
    if (first === 0n) return first;
    const before = found[Number((first - 1n) % BigInt(found.length))];
    const wasClaimed = ticketOf(before) > first - 1n || (ticketOf(before) === first - 1n && stateOf(before) !== FREE);
    return wasClaimed ? first : undefined;
  }
}
