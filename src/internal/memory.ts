/**
 * Internals of memory that the packages of this repository use. No part of the public API: it changes without notice.
 */

export type { ForeignMemory } from '../memory/foreign-memory.js';
export type { QpAttributes } from '../memory/ring/commands.js';
export { COUNTER_NAMES, type CounterName } from '../memory/ring/counters.js';
export { DoorbellRing } from '../memory/ring/doorbell-ring.js';
export {
  EVENT_COMM_EST,
  EVENT_COMPLETION,
  EVENT_CQ_ERR,
  EVENT_QP_FATAL,
  EVENT_QP_LAST_WQE_REACHED,
  EVENT_QP_SETTLED,
  EVENT_SQ_DRAINED,
  EVENT_SRQ_LIMIT_REACHED,
  STATUS_RETRY_EXC_ERR,
} from '../memory/ring/enums.js';
export { PACKET_CIPHERS, type PacketCipherName } from '../memory/ring/protection.js';
export { QP_COUNTER_NAMES, type QpCounterName, WAIT_CAUSES } from '../memory/ring/telemetry-page.js';
export { MESSAGE_BYTES_MAX } from '../memory/ring/work-queue.js';
