/**
 * The word of a slot of a ring: which message it is for, who writes it, and how far that is.
 *
 *     ticket 48   producer 14   state 2
 *
 * A slot takes the tickets that are its number modulo the slots, one after another. A producer changes it from free to
 * claimed by CMP_SWAP, and then to filled; the consumer makes it free for its next ticket. So there is one at a time
 * who may change it.
 */

const PRODUCER_SHIFT = 2n;
const TICKET_SHIFT = 16n;
const PRODUCER_MASK = (1n << (TICKET_SHIFT - PRODUCER_SHIFT)) - 1n;
const STATE_MASK = 3n;

export const FREE = 0n;
export const CLAIMED = 1n;
export const FILLED = 2n;

export const PRODUCERS_MAX = Number(PRODUCER_MASK);

export function freeSlot(ticket: bigint): bigint {
  return ticket << TICKET_SHIFT;
}

export function slotOf(ticket: bigint, producer: number, state: bigint): bigint {
  return (ticket << TICKET_SHIFT) | (BigInt(producer) << PRODUCER_SHIFT) | state;
}

export function ticketOf(word: bigint): bigint {
  return word >> TICKET_SHIFT;
}

export function producerOf(word: bigint): number {
  return Number((word >> PRODUCER_SHIFT) & PRODUCER_MASK);
}

export function stateOf(word: bigint): bigint {
  return word & STATE_MASK;
}
