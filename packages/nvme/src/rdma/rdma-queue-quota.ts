import { type Clock, ConnectionLimiter, NS_PER_S, type Origin } from 'rocev2/internal/core';

/** Queues over RDMA. Each holds 1.1 MiB, and a host with 64 of them sets all up before it connects the first. */
const LIMITS = { total: 1024, perAddress: 256 };
const PENDING_LIMITS = { total: 256, perAddress: 128 };
/** A queue that has not connected for this time makes room for another. */
const PENDING_NS = 2 * NS_PER_S;

/** A queue over RDMA, or its set-up. */
export class RdmaQueueSlot {
  readonly sinceNs: number;
  /** It has been ended for another one; a set-up then must not continue. */
  isEvicted = false;
  /** Whether the host has connected the queue; replaced when the queue is open. */
  isConnected = () => false;
  /** Ends the queue or its set-up for another one; replaced when there is something to end. */
  end = () => {};

  constructor(sinceNs: number) {
    this.sinceNs = sinceNs;
  }
}

/** How many queues over RDMA a target has, in total and from each address. */
export class RdmaQueueQuota {
  readonly #clock: Clock;
  readonly #limiter = new ConnectionLimiter<RdmaQueueSlot>({
    quotas: [
      { states: ['pending'], ...PENDING_LIMITS },
      { states: ['pending', 'admitted'], ...LIMITS },
    ],
    evict: (slot) => {
      slot.isEvicted = true;
      slot.end();
    },
  });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Undefined: the target or the address has its maximum, and no queue that could be ended for it. */
  admit(origin: Origin): RdmaQueueSlot | undefined {
    const nowNs = this.#clock.nowNs();
    const slot = new RdmaQueueSlot(nowNs);
    const isStuck = ({ sinceNs }: RdmaQueueSlot) => nowNs - sinceNs > PENDING_NS;
    return this.#limiter.admit(slot, origin, () => slot.isConnected(), isStuck) ? slot : undefined;
  }

  leave(slot: RdmaQueueSlot): void {
    this.#limiter.leave(slot);
  }
}
