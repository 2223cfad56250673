/** The queue pair of one sK-RDMA connection and what belongs to it. Everything of a connection dies with its protection domain. */

import type { Clock } from '../../core/clock.js';
import type { CompletionQueue } from '../../verbs/completion-queue.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import type { QueuePair, QueuePairInit } from '../../verbs/queue-pair.js';
import { SK_SLOTS_MAX } from './request.js';
import { RESPONSE_MESSAGE_BYTES_MAX } from './response.js';

/** A queue pair in INIT or further, with completion queues of its own. */
export interface SkRdmaParts {
  /** Of this connection alone. */
  readonly pd: ProtectionDomain;
  /** The queue pair. */
  readonly qp: QueuePair;
  /** Of this queue pair alone. */
  readonly sendCq: CompletionQueue;
  /** Of this queue pair alone. */
  readonly recvCq: CompletionQueue;
  /** For the memory pool of a client. */
  readonly clock: Clock;
  /** Called when the channel has closed all this. */
  readonly onClosed?: () => void;
}

/** Messages that may be under way in one direction: one a slot, and PING or RESUME. Some more lest the last one ever waits. */
export const SK_RECEIVES = SK_SLOTS_MAX + 4;
/** REG_MR, SEND and LOCAL_INV for every request of a client. */
const CLIENT_SENDS = 3 * SK_RECEIVES;
/** READ for the data of a request, WRITE and SEND for its answer, of which the last may still wait to be polled. */
const SERVER_SENDS = 4 * SK_RECEIVES;

/** A peer that is silent for the 0.54 s of the standard's timers is left for TCP: waiting longer would only delay the failover. */
export const SK_TOTAL_TIMEOUT = 0;

/** Depths for `createQp` at the client; the CQs hold `maxSendWr` and `maxRecvWr`. */
export const SK_CLIENT_QP = {
  maxSendWr: CLIENT_SENDS,
  maxRecvWr: SK_RECEIVES,
} as const satisfies Partial<QueuePairInit>;
/** The same at the server, whose responses are copied into the work request. */
export const SK_SERVER_QP = {
  maxSendWr: SERVER_SENDS,
  maxRecvWr: SK_RECEIVES,
  maxInlineBytes: RESPONSE_MESSAGE_BYTES_MAX,
} as const satisfies Partial<QueuePairInit>;
