/**
 * Turns of queue pairs that send to one socket, where it is too small for all of them at once. A queue pair sends a burst, and the next one waits, first come, first
 * served, until the socket has room for a burst again: network adapters arbitrate in bursts, too. So a peer answers bursts and not packets, whoever handles a
 * queue pair has its state in the cache for all of a burst, and there are never more packets on the way than the socket holds.
 *
 * Invariant: `taken` is the sum of what the takers hold: packets in flight, and what is left of their turns. A taker that waits is woken as soon as there is room,
 * because room only comes by `hold`, `release` and {@link TurnPool.grant}. No taker keeps room without packets in flight: a turn ends when its owner has nothing to send.
 */

import type { Sharers } from './peer-budget.js';

/** Packets of a turn: four messages of 16 KiB, and as many packets as the NIC lets a queue pair send before the next one. */
export const TURN_PACKETS = 16;

/** One queue pair of a {@link TurnPool}. */
export interface TurnTaker {
  /** Packets that it may still send in this turn. */
  turnLeft: number;
  /** What it holds of the pool. */
  held: number;
  /** It has asked for a turn. */
  isWaiting: boolean;
  /** It stands in the queue; it may have given up waiting since. */
  isQueued: boolean;
  /** The next one in the queue. */
  next: TurnTaker | undefined;
  /** Its turn has come. */
  wake: () => void;
}

/** Queue pairs that were told the same number of packets for one socket. What others were told has no influence on it. */
export class TurnPool {
  /** Packets that the socket can hold. */
  readonly limitPackets: number;
  /** All that send to the socket, also those that were told another number. */
  readonly sharers: Sharers;
  /** How many of them are in this pool. */
  members = 0;
  #taken = 0;
  #first: TurnTaker | undefined;
  #last: TurnTaker | undefined;

  constructor(limitPackets: number, sharers: Sharers) {
    this.limitPackets = limitPackets;
    this.sharers = sharers;
  }

  /** Packets that its members hold. */
  get taken(): number {
    return this.#taken;
  }

  /** There is room for one more turn in the part of the socket that is due to the members. */
  get #hasRoom(): boolean {
    const part = Math.floor((this.limitPackets * this.members) / Math.max(1, this.sharers.count));
    return this.#taken + TURN_PACKETS <= Math.max(TURN_PACKETS, part);
  }

  /** Begins a turn of `taker`, at once or when those before it have had theirs. */
  ask(taker: TurnTaker): void {
    if (this.#first === undefined && this.#hasRoom) {
      this.#begin(taker);
      return;
    }
    taker.isWaiting = true;
    if (taker.isQueued) return;
    taker.isQueued = true;
    if (this.#last === undefined) this.#first = taker;
    else this.#last.next = taker;
    this.#last = taker;
    this.grant();
  }

  #begin(taker: TurnTaker): void {
    taker.isWaiting = false;
    taker.turnLeft = TURN_PACKETS;
    taker.held += TURN_PACKETS;
    this.#taken += TURN_PACKETS;
  }

  /** `taker` holds so many packets now. */
  hold(taker: TurnTaker, packets: number): void {
    const change = packets - taker.held;
    if (change === 0) return;
    taker.held = packets;
    this.#taken += change;
    if (change < 0) this.grant();
  }

  /** `taker` holds nothing, and wants nothing. */
  release(taker: TurnTaker): void {
    taker.turnLeft = 0;
    taker.isWaiting = false;
    this.hold(taker, 0);
  }

  /** Begins the turns for which there is room. */
  grant(): void {
    for (let taker = this.#first; taker !== undefined; taker = this.#first) {
      if (taker.isWaiting && !this.#hasRoom) return;
      this.#first = taker.next;
      if (this.#first === undefined) this.#last = undefined;
      taker.next = undefined;
      taker.isQueued = false;
      if (!taker.isWaiting) continue;
      this.#begin(taker);
      taker.wake();
    }
  }
}
