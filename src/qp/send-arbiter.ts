/**
 * Arbitrates between queue pairs that send to one socket which is too small for all of them at once. A queue pair sends
 * a burst; the next one waits until the socket has space for another burst. Hardware NICs also arbitrate in bursts. So
 * a peer answers bursts instead of packets, the state of a queue pair stays in the cache for a whole burst, and packets
 * in flight never exceed the capacity of the socket.
 *
 * A share is the packets of one burst. A flow that has used its whole share is served again in the order of requests. A
 * flow that has a part left, or has had no share since the first in that order, goes first. So a queue pair that sends
 * little does not wait for all busy ones, and none gets more than one share in a round (in the manner of FQ-CoDel's new
 * and old flows, RFC 8290 §4.2).
 *
 * Invariant: `taken` is the sum over all flows of packets in flight and the rest of their bursts. A waiting flow is
 * woken as soon as there is space, because only `hold`, `release` and {@link SendArbiter.grant} free space. No flow
 * holds space without packets in flight: a burst ends when there is nothing to send.
 */

/**
 * Packets of the shortest burst: four messages of 16 KiB, and as many packets as the NIC lets a queue pair send before
 * the next one.
 */
export const BURST_PACKETS_MIN = 16;
/**
 * Packets of the longest burst: twice as many. Longer ones gain little (docs/performance.md, "A thousand queue pairs").
 */
const BURST_PACKETS_MAX = 32;
/**
 * The socket must have space for this many bursts before they become longer than the shortest: some are sent while
 * others are answered.
 */
const BURSTS_AT_A_TIME = 8;

export interface FlowCount {
  count: number;
}

/** One queue pair of a {@link SendArbiter}. */
export interface SendFlow {
  /** Packets that it may still send in this burst. */
  burstLeft: number;
  /** Packets of its share for which it had no use when its burst ended. */
  shareLeft: number;
  /** Which of the arbiter's shares it had last, counted from 1; 0: none yet. */
  lastShare: number;
  /** What it holds of the socket. */
  held: number;
  /** It has requested a burst. */
  isWaiting: boolean;
  /** It is in a FIFO; it may have given up waiting since. */
  isQueued: boolean;
  /** The next one in the FIFO. */
  next: SendFlow | undefined;
  /** Its burst has begun. */
  wake: () => void;
}

class FlowFifo {
  first: SendFlow | undefined;
  #last: SendFlow | undefined;

  push(flow: SendFlow): void {
    flow.isQueued = true;
    if (this.#last === undefined) this.first = flow;
    else this.#last.next = flow;
    this.#last = flow;
  }

  shift(): void {
    const flow = this.first!;
    this.first = flow.next;
    if (this.first === undefined) this.#last = undefined;
    flow.next = undefined;
    flow.isQueued = false;
  }
}

/** Independent of announcements to other queue pairs. */
export class SendArbiter {
  readonly limitPackets: number;
  /** Packets of a burst, 16 to 32. */
  readonly burstPackets: number;
  /** All flows to the socket, also those with another announced number. */
  readonly flows: FlowCount;
  /** How many of them use this arbiter. */
  members = 0;
  #taken = 0;
  #shares = 0;
  /** Flows that have a part of their share left, or have waited longer than the first in the other FIFO. */
  readonly #newFlows = new FlowFifo();
  readonly #oldFlows = new FlowFifo();

  constructor(limitPackets: number, flows: FlowCount) {
    this.limitPackets = limitPackets;
    const longest = Math.min(BURST_PACKETS_MAX, Math.floor(limitPackets / BURSTS_AT_A_TIME));
    this.burstPackets = Math.max(BURST_PACKETS_MIN, longest);
    this.flows = flows;
  }

  get taken(): number {
    return this.#taken;
  }

  /** The members' part of the socket has space for one more burst. */
  get #hasRoom(): boolean {
    const part = Math.floor((this.limitPackets * this.members) / Math.max(1, this.flows.count));
    return this.#taken + this.burstPackets <= Math.max(this.burstPackets, part);
  }

  /** Begins a burst of `flow`, at once or when those before it have had theirs. */
  request(flow: SendFlow): void {
    const next = this.#oldFlows.first;
    if (next === undefined && this.#newFlows.first === undefined && this.#hasRoom) {
      this.#begin(flow);
      return;
    }
    flow.isWaiting = true;
    if (flow.isQueued) return;
    const goesAhead = flow.shareLeft > 0 || (next !== undefined && flow.lastShare < next.lastShare);
    (goesAhead ? this.#newFlows : this.#oldFlows).push(flow);
    this.grant();
  }

  #begin(flow: SendFlow): void {
    if (flow.shareLeft === 0) {
      flow.shareLeft = this.burstPackets;
      flow.lastShare = ++this.#shares;
    }
    flow.isWaiting = false;
    flow.burstLeft = flow.shareLeft;
    flow.shareLeft = 0;
    flow.held += flow.burstLeft;
    this.#taken += flow.burstLeft;
  }

  /** `flow` holds this many packets now. */
  hold(flow: SendFlow, packets: number): void {
    const change = packets - flow.held;
    if (change === 0) return;
    flow.held = packets;
    this.#taken += change;
    if (change < 0) this.grant();
  }

  /** `flow` holds nothing, and wants nothing. */
  release(flow: SendFlow): void {
    flow.burstLeft = 0;
    flow.isWaiting = false;
    this.hold(flow, 0);
  }

  /** Begins the bursts for which there is room. */
  grant(): void {
    for (;;) {
      const fifo = this.#newFlows.first === undefined ? this.#oldFlows : this.#newFlows;
      const flow = fifo.first;
      if (flow === undefined || (flow.isWaiting && !this.#hasRoom)) return;
      fifo.shift();
      if (!flow.isWaiting) continue;
      this.#begin(flow);
      flow.wake();
    }
  }
}
