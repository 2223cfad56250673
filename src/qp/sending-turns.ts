/**
 * Turns of queue pairs that send to one socket, where it is too small for all of them at once. A queue pair sends a burst, and the next one waits until the socket has
 * room for a burst again: network adapters arbitrate in bursts, too. So a peer answers bursts and not packets, whoever handles a
 * queue pair has its state in the cache for all of a burst, and there are never more packets on the way than the socket holds.
 *
 * A turn is a share of so many packets. Who has used all of it is served again in the order of asking. Who has some of it left, or has had no turn since the one that is
 * next in that order, goes ahead: a queue pair that sends little does not wait for all those that send much, and nobody gets more than one share in a
 * round (in the manner of FQ-CoDel's new and old flows, RFC 8290 §4.2).
 *
 * Invariant: `taken` is the sum of what the takers hold: packets in flight, and what is left of their turns. A taker that waits is woken as soon as there is room,
 * because room only comes by `hold`, `release` and {@link TurnPool.grant}. No taker keeps room without packets in flight: a turn ends when its owner has nothing to send.
 */

import type { Sharers } from './peer-budget.js';

/** Packets of the shortest turn: four messages of 16 KiB, and as many packets as the NIC lets a queue pair send before the next one. */
export const TURN_PACKETS_MIN = 16;
/** And of the longest: two such bursts. Longer ones gain little more (docs/performance.md, "A thousand queue pairs"). */
const TURN_PACKETS_MAX = 32;
/** Turns at a time for which the socket must have room before they get longer than the shortest: some are sent while others are answered. */
const TURNS_AT_A_TIME = 8;

/** One queue pair of a {@link TurnPool}. */
export interface TurnTaker {
  /** Packets that it may still send in this turn. */
  turnLeft: number;
  /** Packets of its share for which it had no use when its turn ended. */
  shareLeft: number;
  /** Which of the pool's shares it had last, counted from 1; 0: none yet. */
  lastShare: number;
  /** What it holds of the pool. */
  held: number;
  /** It has asked for a turn. */
  isWaiting: boolean;
  /** It stands in a line; it may have given up waiting since. */
  isQueued: boolean;
  /** The next one in the line. */
  next: TurnTaker | undefined;
  /** Its turn has come. */
  wake: () => void;
}

/** First come, first served. */
class Line {
  first: TurnTaker | undefined;
  #last: TurnTaker | undefined;

  push(taker: TurnTaker): void {
    taker.isQueued = true;
    if (this.#last === undefined) this.first = taker;
    else this.#last.next = taker;
    this.#last = taker;
  }

  /** Removes `first`, which there is. */
  shift(): void {
    const taker = this.first!;
    this.first = taker.next;
    if (this.first === undefined) this.#last = undefined;
    taker.next = undefined;
    taker.isQueued = false;
  }
}

/** Queue pairs that were told the same number of packets for one socket. What others were told has no influence on it. */
export class TurnPool {
  /** Packets that the socket can hold. */
  readonly limitPackets: number;
  /** Packets of a turn, 16 to 32. */
  readonly turnPackets: number;
  /** All that send to the socket, also those that were told another number. */
  readonly sharers: Sharers;
  /** How many of them are in this pool. */
  members = 0;
  #taken = 0;
  /** Shares given out. */
  #shares = 0;
  /** Those who have something of their share left, or have had none for longer than the first in the other line. */
  readonly #ahead = new Line();
  readonly #behind = new Line();

  constructor(limitPackets: number, sharers: Sharers) {
    this.limitPackets = limitPackets;
    const longest = Math.min(TURN_PACKETS_MAX, Math.floor(limitPackets / TURNS_AT_A_TIME));
    this.turnPackets = Math.max(TURN_PACKETS_MIN, longest);
    this.sharers = sharers;
  }

  /** Packets that its members hold. */
  get taken(): number {
    return this.#taken;
  }

  /** There is room for one more turn in the part of the socket that is due to the members. */
  get #hasRoom(): boolean {
    const part = Math.floor((this.limitPackets * this.members) / Math.max(1, this.sharers.count));
    return this.#taken + this.turnPackets <= Math.max(this.turnPackets, part);
  }

  /** Begins a turn of `taker`, at once or when those before it have had theirs. */
  ask(taker: TurnTaker): void {
    const next = this.#behind.first;
    if (next === undefined && this.#ahead.first === undefined && this.#hasRoom) {
      this.#begin(taker);
      return;
    }
    taker.isWaiting = true;
    if (taker.isQueued) return;
    const goesAhead = taker.shareLeft > 0 || (next !== undefined && taker.lastShare < next.lastShare);
    (goesAhead ? this.#ahead : this.#behind).push(taker);
    this.grant();
  }

  #begin(taker: TurnTaker): void {
    if (taker.shareLeft === 0) {
      taker.shareLeft = this.turnPackets;
      taker.lastShare = ++this.#shares;
    }
    taker.isWaiting = false;
    taker.turnLeft = taker.shareLeft;
    taker.shareLeft = 0;
    taker.held += taker.turnLeft;
    this.#taken += taker.turnLeft;
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
    for (;;) {
      const line = this.#ahead.first === undefined ? this.#behind : this.#ahead;
      const taker = line.first;
      if (taker === undefined || (taker.isWaiting && !this.#hasRoom)) return;
      line.shift();
      if (!taker.isWaiting) continue;
      this.#begin(taker);
      taker.wake();
    }
  }
}
