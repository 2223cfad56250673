/**
 * How many packets a queue pair may have in flight. The peer's socket can hold so many, and all queue pairs to it share
 * that; but each peer queue pair tells the number for itself. A number belongs to the queue pair that was told it: what
 * others claim, small or large, changes nobody else's window. All that others can do is take part, and then each has
 * its fair share.
 *
 * Where the share is a few packets, an arbiter lets them take turns (`send-arbiter.ts`): each sends a burst, and only
 * so many at a time as the socket holds.
 */

import { BURST_PACKETS_MIN, type FlowCount, type SendArbiter, type SendFlow } from './send-arbiter.js';

/**
 * A share below this is used in turns: an answer for every packet or two, and everything of a queue pair out of the
 * cache each time, cost more than waiting.
 */
const SHARE_MIN_PACKETS = 4;
/** With fewer packets there are no more than two bursts. */
const ARBITRATED_LIMIT_MIN_PACKETS = 2 * BURST_PACKETS_MIN;

/**
 * Packets one queue pair may have in flight that does not take turns: its share of what the peer's socket can hold. Two
 * at least, so that one is sent while the other is answered, as long as that fits into twice the limit, the whole of
 * the peer's buffer; with more queue pairs one.
 */
export function windowPackets({ limitPackets, flows }: { limitPackets: number; flows: FlowCount }): number {
  const { count } = flows;
  return Math.max(count <= limitPackets ? 2 : 1, Math.floor(limitPackets / Math.max(1, count)));
}

export class PeerInFlightLimit {
  /**
   * Packets that the peer's socket can hold, as announced by its queue pair: all of it is ours if no other queue pair
   * sends to it.
   */
  readonly limitPackets: number;
  readonly flows: FlowCount;
  readonly arbiter: SendArbiter;
  /** With more flows than this the arbiter decides. */
  readonly #flowsMax: number;
  /** The queue pair as the arbiter sees it. */
  readonly #flow: SendFlow = {
    burstLeft: 0,
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

  /** `arbiter`: that of those that were told the same of one socket. */
  constructor(arbiter: SendArbiter) {
    this.limitPackets = arbiter.limitPackets;
    this.flows = arbiter.flows;
    this.arbiter = arbiter;
    const { limitPackets } = arbiter;
    this.#flowsMax =
      limitPackets < ARBITRATED_LIMIT_MIN_PACKETS
        ? Number.POSITIVE_INFINITY
        : Math.floor(limitPackets / SHARE_MIN_PACKETS);
    arbiter.members++;
  }

  /**
   * The arbiter decides, or the last burst has left something: {@link settle} has to be called when what is in flight
   * changes.
   */
  get isArbitrating(): boolean {
    return this.flows.count > this.#flowsMax || this.#flow.held > 0 || this.#flow.isWaiting;
  }

  /**
   * The arbiter decides when packets are sent. Not by a queue pair whose peer is silent: its packets must not keep
   * others waiting, and they are few.
   */
  get isArbitrated(): boolean {
    return this.flows.count > this.#flowsMax && this.#isMember && !this.#isSilent;
  }

  /** Packets that may be in flight: the share, or those of a burst. */
  get windowPackets(): number {
    return this.isArbitrated ? this.arbiter.burstPackets : windowPackets(this);
  }

  /**
   * Packets that may be sent in this burst; begins one if it can. 0: `wake` is called when it has begun. Only where
   * {@link isArbitrated}.
   */
  burstPackets(wake: () => void): number {
    const flow = this.#flow;
    if (flow.burstLeft === 0) {
      flow.wake = wake;
      this.arbiter.request(flow);
    }
    return flow.burstLeft;
  }

  /** `packets` of the burst, if there is one, have been sent. */
  sent(packets: number): void {
    const flow = this.#flow;
    flow.burstLeft = Math.max(0, flow.burstLeft - packets);
  }

  /** There is nothing to send now: the room for what is left of the burst is for others. */
  endBurst(): void {
    const flow = this.#flow;
    flow.shareLeft += flow.burstLeft;
    flow.burstLeft = 0;
  }

  settle(inFlight: number, isSilent: boolean): void {
    this.#isSilent = isSilent;
    const flow = this.#flow;
    if (this.isArbitrated) this.arbiter.hold(flow, inFlight + flow.burstLeft);
    else if (flow.held > 0 || flow.isWaiting) {
      const { isWaiting } = flow;
      this.arbiter.release(flow);
      if (isWaiting) flow.wake(); // It does not need a burst now.
    }
  }

  detach(): void {
    this.#isMember = false;
    this.arbiter.members--;
    this.arbiter.release(this.#flow);
  }
}
