import type { EgressQueues } from './egress-queues.js';
import type { SwitchPortCounters } from './switch-counters.js';

export const ADMITTED = 0;
const QUEUE_FULL = 1;
export const LOSSY_THRESHOLD = 2;
export const POOL_FULL = 3;
/**
 * A lossless ingress queue has used up its headroom, or all together the headroom pool: the loss that PFC exists to
 * prevent.
 */
export const HEADROOM_FULL = 4;

export const DROP_COUNTERS: ReadonlyArray<keyof SwitchPortCounters> = [
  'tx_packets', // ADMITTED is no reason
  'tx_dropped_queue_full',
  'tx_dropped_lossy_threshold',
  'tx_dropped_pool_full',
  'tx_dropped_headroom',
];

/** A cut packet is this much shorter than one of 1 KiB. */
const CUT_PER_PACKET = 16;

/** Present and largest content of a pool. */
export interface PoolUse {
  /** What the pool may hold. */
  readonly sizeBytes: number;
  /** What it holds now. */
  readonly usedBytes: number;
  /** The most it has held since the watermarks were reset. */
  readonly maxBytes: number;
}

/** The pools of the packet memory. */
export interface BufferPools {
  /** What is shared of the ingress pool: all of it but the reserves. */
  readonly shared: PoolUse;
  /** For what arrives after an XOFF. */
  readonly headroom: PoolUse;
  /** The limit of lossy frames inside the ingress pool. */
  readonly egressLossy: PoolUse;
  /** The whole memory: it never binds. */
  readonly egressLossless: PoolUse;
}

/** A lossless or lossy ingress queue (priority group). */
export interface IngressGroupUse {
  /** Reserved and shared bytes. */
  readonly usedBytes: number;
  /** The most since the watermarks were reset. */
  readonly usedBytesMax: number;
  /** Bytes in the headroom now. */
  readonly headroomBytes: number;
  /** The most since the watermarks were reset. */
  readonly headroomBytesMax: number;
  /** Its sender is paused. */
  readonly isXoff: boolean;
  /** Times it has paused its sender. */
  readonly xoffs: number;
  /** Lossless frames that found no headroom. */
  readonly lostPackets: number;
}

export interface BufferPolicy {
  /** {@link ADMITTED}, and the frame is charged; or why not. */
  admit(ingress: number, egress: number, priority: number, bytes: number): number;
  depart(ingress: number, egress: number, priority: number, bytes: number): void;
  pools(): BufferPools | undefined;
  group(ingress: number, priority: number): IngressGroupUse | undefined;
  resetWatermarks(): void;
}

export class PacketLimit implements BufferPolicy {
  readonly #queues: EgressQueues;
  readonly #packetsMax: number;
  readonly #cutPriority: number;
  readonly #cut: Uint32Array;

  /** `cutPriority`: of trimmed packets, which have a separate limit; -1: there is none. */
  constructor(queues: EgressQueues, packetsMax: number, cutPriority: number) {
    this.#queues = queues;
    this.#packetsMax = packetsMax;
    this.#cutPriority = cutPriority;
    this.#cut = new Uint32Array(queues.portPackets.length);
  }

  admit(_ingress: number, egress: number, priority: number): number {
    const cut = this.#cut[egress];
    if (priority !== this.#cutPriority) {
      return this.#queues.portPackets[egress] - cut < this.#packetsMax ? ADMITTED : QUEUE_FULL;
    }
    if (cut >= CUT_PER_PACKET * this.#packetsMax) return QUEUE_FULL;
    this.#cut[egress]++;
    return ADMITTED;
  }

  depart(_ingress: number, egress: number, priority: number): void {
    if (priority === this.#cutPriority) this.#cut[egress]--;
  }

  pools(): undefined {}

  group(): undefined {}

  resetWatermarks(): void {}
}
