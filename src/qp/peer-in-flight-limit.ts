/**
 * How many packets a queue pair may have in flight. All queue pairs to one socket share its capacity, which each peer
 * queue pair announces separately. An announcement limits only the queue pair that received it: a false one, small or
 * large, does not change other windows. Other queue pairs only reduce the share by taking part.
 *
 * If the share is only a few packets, an arbiter lets them take turns (`send-arbiter.ts`): each sends a burst, and only
 * as many send at a time as the socket can hold.
 */

import { BURST_PACKETS_MIN, type FlowCount, type SendArbiter, type SendFlow } from './send-arbiter.js';

/**
 * A smaller share is used in turns: an answer for every packet or two, with a cold cache each time, costs more than
 * waiting.
 */
const SHARE_MIN_PACKETS = 4;
/** With fewer packets there are no more than two bursts. */
const ARBITRATED_LIMIT_MIN_PACKETS = 2 * BURST_PACKETS_MIN;

/**
 * Packets that a queue pair without an arbiter may have in flight: its share of the capacity of the peer's socket. At
 * least two, so that one is sent while the other is answered, while that fits into twice the limit, which is the peer's
 * whole buffer. With more queue pairs one.
 */
export function windowPackets({ limitPackets, flows }: { limitPackets: number; flows: FlowCount }): number {
  const { count } = flows;
  return Math.max(count <= limitPackets ? 2 : 1, Math.floor(limitPackets / Math.max(1, count)));
}

export class PeerInFlightLimit {
  /**
   * Packets that the peer's socket can hold, as announced by its queue pair; available to this queue pair alone if no
   * other sends to it.
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

  /** `arbiter`: shared by queue pairs that received the same announcement for one socket. */
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
   * The arbiter decides when packets are sent. Not for a queue pair whose peer is silent: its few packets must not
   * delay others.
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

  /** There is nothing to send now: others may use the rest of the burst. */
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
