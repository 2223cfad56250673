import type { Clock } from '../../core/clock.js';
import type { CompletionQueue } from '../../verbs/completion-queue.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import type { QueuePair, QueuePairInit } from '../../verbs/queue-pair.js';
import { SK_SLOTS_MAX } from './request.js';
import { RESPONSE_MESSAGE_BYTES_MAX } from './response.js';

export interface SkRdmaParts {
  readonly pd: ProtectionDomain;
  readonly qp: QueuePair;
  readonly sendCq: CompletionQueue;
  readonly recvCq: CompletionQueue;
  readonly clock: Clock;
  readonly onClosed?: () => void;
}

/** Messages that may be in flight in one direction: one a slot, and PING or RESUME. */
export const SK_RECEIVES = SK_SLOTS_MAX + 4;
const CLIENT_SENDS = 3 * SK_RECEIVES;
/** READ for the data of a request, WRITE and SEND for its answer, of which the last may still wait to be polled. */
const SERVER_SENDS = 4 * SK_RECEIVES;

/**
 * A peer that is silent for the 0.54 s of the standard's timers is left for TCP; a longer wait only delays the
 * failover.
 */
export const SK_TOTAL_TIMEOUT = 0;

export const SK_CLIENT_QP = {
  maxSendWr: CLIENT_SENDS,
  maxRecvWr: SK_RECEIVES,
} as const satisfies Partial<QueuePairInit>;
export const SK_SERVER_QP = {
  maxSendWr: SERVER_SENDS,
  maxRecvWr: SK_RECEIVES,
  maxInlineBytes: RESPONSE_MESSAGE_BYTES_MAX,
} as const satisfies Partial<QueuePairInit>;
