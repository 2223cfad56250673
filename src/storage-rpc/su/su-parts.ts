import type { Clock } from '../../core/clock.js';
import type { CompletionQueue } from '../../verbs/completion-queue.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import type { QueuePair, QueuePairInit } from '../../verbs/queue-pair.js';
import type { BufferPool } from '../pool/buffer-pool.js';

/**
 * Registered memory that all connections of a protection domain share. Peers can access only `exposed`: sources of
 * large transfers.
 */
export interface SuPools {
  /** Slabs with LOCAL_WRITE, for sent and received data. */
  readonly local: BufferPool<MemoryRegion>;
  /** Slabs with REMOTE_READ. */
  readonly exposed: BufferPool<MemoryRegion>;
}

export interface SuParts {
  readonly pd: ProtectionDomain;
  readonly qp: QueuePair;
  readonly sendCq: CompletionQueue;
  readonly recvCq: CompletionQueue;
  readonly clock: Clock;
  readonly pools: SuPools;
  readonly onClosed?: (() => void) | undefined;
}

/** Sizes and times of a connection; of each size the smaller of both sides is used. */
export interface SuOptions {
  /**
   * Largest message that travels in a SEND; at most, and by default, 4056: with its header one packet of 4096 bytes.
   */
  readonly smallBytesMax?: number | undefined;
  /** Largest message that is written into a slot; at most 1 MiB, default 64 KiB. */
  readonly slotBytes?: number | undefined;
  /** Default 8. */
  readonly slots?: number | undefined;
  /** Large messages move in pieces of this size, one at a time in each direction; at most 1 MiB, default 64 KiB. */
  readonly chunkBytes?: number | undefined;
  /** A silent peer is probed after this time; default 1 s. */
  readonly idleNs?: number | undefined;
  /** A peer that is silent for this long is given up; default 3 s. */
  readonly silenceNs?: number | undefined;
}

export const SU_WINDOW = 32;
export const SU_RECEIVE_BYTES = 4096;
const CONTROL_BYTES_MAX = 256;

export const SU_QP = {
  maxSendWr: 128,
  maxRecvWr: SU_WINDOW,
  maxInlineBytes: CONTROL_BYTES_MAX,
} as const satisfies Partial<QueuePairInit>;
