/**
 * How many packets a queue pair may have in flight. The peer's socket can hold so many, and all queue pairs to it share that; but each peer queue
 * pair tells the number for itself. A number belongs to the queue pair that was told it: what others claim, small or large, changes nobody
 * else's window. All that others can do is take part, and then each has its fair share.
 *
 * Where the share is a few packets, queue pairs take turns (`sending-turns.ts`): each sends a burst, and only so many at a time as the socket holds.
 */

import { TURN_PACKETS_MIN, type TurnPool, type TurnTaker } from './sending-turns.js';

/** The queue pairs that send to one socket. */
export interface Sharers {
  /** How many there are: connected, and not in ERR. */
  count: number;
}

/** A share below this is used in turns: an answer for every packet or two, and everything of a queue pair out of the cache each time, cost more than waiting. */
const SHARE_MIN_PACKETS = 4;
/** Fewer packets are no more than two bursts. */
const TURNS_LIMIT_MIN_PACKETS = 2 * TURN_PACKETS_MIN;

/**
 * Packets one queue pair may have in flight that does not take turns: its share of what the peer's socket can hold. Two at least, so that one is sent while the
 * other is answered, as long as that fits into twice the limit, the whole of the peer's buffer; with more queue pairs one.
 */
export function windowPackets({ limitPackets, sharers }: { limitPackets: number; sharers: Sharers }): number {
  const { count } = sharers;
  return Math.max(count <= limitPackets ? 2 : 1, Math.floor(limitPackets / Math.max(1, count)));
}

/** What one queue pair may have in flight. */
export class PeerBudget {
  /** Packets that the peer's socket can hold, as its queue pair told: all of it would be ours if we were alone. */
  readonly limitPackets: number;
  /** With whom it is shared. */
  readonly sharers: Sharers;
  /** Those that were told the same. */
  readonly pool: TurnPool;
  /** With more sharers than this there are turns. */
  readonly #sharersMax: number;
  /** Its place in the pool, and what it holds of it. */
  readonly #taker: TurnTaker = {
    turnLeft: 0,
    shareLeft: 0,
    lastShare: 0,
    held: 0,
    isWaiting: false,
    isQueued: false,
    next: undefined,
    wake: () => {},
  };
  #isMember = true;
  #isSilent = false;

  /** `pool`: those that were told the same of one socket. */
  constructor(pool: TurnPool) {
    this.limitPackets = pool.limitPackets;
    this.sharers = pool.sharers;
    this.pool = pool;
    const { limitPackets } = pool;
    this.#sharersMax =
      limitPackets < TURNS_LIMIT_MIN_PACKETS ? Number.POSITIVE_INFINITY : Math.floor(limitPackets / SHARE_MIN_PACKETS);
    pool.members++;
  }

  /** There are turns, or it has something left of the last one: {@link settle} has to be called when what is in flight changes. */
  get isCrowded(): boolean {
    return this.sharers.count > this.#sharersMax || this.#taker.held > 0 || this.#taker.isWaiting;
  }

  /** Packets are sent in turns. Not by a queue pair whose peer is silent: its packets must not keep others waiting, and they are few. */
  get takesTurns(): boolean {
    return this.sharers.count > this.#sharersMax && this.#isMember && !this.#isSilent;
  }

  /** Packets that may be in flight: the share, or those of a turn. */
  get windowPackets(): number {
    return this.takesTurns ? this.pool.turnPackets : windowPackets(this);
  }

  /** Packets that may be sent in this turn; begins one if it can. 0: `wake` is called when it has begun. Only where {@link takesTurns}. */
  turnPackets(wake: () => void): number {
    const taker = this.#taker;
    if (taker.turnLeft === 0) {
      taker.wake = wake;
      this.pool.ask(taker);
    }
    return taker.turnLeft;
  }

  /** `packets` of the turn, if there is one, have been sent. */
  sent(packets: number): void {
    const taker = this.#taker;
    taker.turnLeft = Math.max(0, taker.turnLeft - packets);
  }

  /** There is nothing to send now: the room for what is left of the turn is for others. */
  endTurn(): void {
    const taker = this.#taker;
    taker.shareLeft += taker.turnLeft;
    taker.turnLeft = 0;
  }

  /** `inFlight` packets are in flight now. `isSilent`: a timeout has passed since the peer was heard. */
  settle(inFlight: number, isSilent: boolean): void {
    this.#isSilent = isSilent;
    const taker = this.#taker;
    if (this.takesTurns) this.pool.hold(taker, inFlight + taker.turnLeft);
    else if (taker.held > 0 || taker.isWaiting) {
      const { isWaiting } = taker;
      this.pool.release(taker);
      if (isWaiting) taker.wake(); // It needs no turn any more.
    }
  }

  /** The queue pair sends no more. */
  leave(): void {
    this.#isMember = false;
    this.pool.members--;
    this.pool.release(this.#taker);
  }
}
