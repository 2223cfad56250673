/** What an sU-RDMA connection is made of, and its sizes. */

import type { Clock } from '../../core/clock.js';
import type { CompletionQueue } from '../../verbs/completion-queue.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import type { QueuePair, QueuePairInit } from '../../verbs/queue-pair.js';
import type { BufferPool } from '../pool/buffer-pool.js';

/**
 * Registered memory that all connections of a protection domain share. Peers reach only what lies in `exposed`: sources of large transfers.
 */
export interface SuPools {
  /** Slabs with LOCAL_WRITE: what is sent and received. */
  readonly local: BufferPool<MemoryRegion>;
  /** Slabs with REMOTE_READ. */
  readonly exposed: BufferPool<MemoryRegion>;
}

/** A queue pair in INIT or further, with completion queues of its own. */
export interface SuParts {
  /** Of the endpoint: closing the connection leaves it. */
  readonly pd: ProtectionDomain;
  /** The queue pair. */
  readonly qp: QueuePair;
  /** Of this queue pair alone. */
  readonly sendCq: CompletionQueue;
  /** Of this queue pair alone. */
  readonly recvCq: CompletionQueue;
  /** For silence. */
  readonly clock: Clock;
  /** Registered buffers, shared by connections. */
  readonly pools: SuPools;
  /** Called when the connection has closed all this. */
  readonly onClosed?: () => void;
}

/** Sizes and times of a connection; of each size the smaller of both sides is used. */
export interface SuOptions {
  /** Largest message that travels in a SEND; at most, and by default, 4056: with its header one packet of 4096 bytes. */
  readonly smallBytesMax?: number;
  /** Largest message that is written into a slot; at most 1 MiB, default 64 KiB. */
  readonly slotBytes?: number;
  /** Default 8. */
  readonly slots?: number;
  /** Large messages move in pieces of this size, one at a time in each direction; at most 1 MiB, default 64 KiB. */
  readonly chunkBytes?: number;
  /** A silent peer is asked for a sign of life after so long; default 1 s. */
  readonly idleNs?: number;
  /** A peer that stays silent for so long is given up; default 3 s. */
  readonly silenceNs?: number;
}

/** Receives that are posted: the window of credits. */
export const SU_WINDOW = 32;
/** Bytes of each: a header and a small message. */
export const SU_RECEIVE_BYTES = 4096;
const CONTROL_BYTES_MAX = 256;

/** For `createQp`; the CQs hold `maxSendWr` and `maxRecvWr`. */
export const SU_QP = {
  maxSendWr: 128,
  maxRecvWr: SU_WINDOW,
  maxInlineBytes: CONTROL_BYTES_MAX,
} as const satisfies Partial<QueuePairInit>;
