/**
 * Internals of memory that the packages of this repository use. No part of the public API: it changes without notice.
 */

export type { QpAttributes } from '../memory/ring/commands.js';
export { COUNTER_NAMES, type CounterName } from '../memory/ring/counters.js';
export { STATUS_RETRY_EXC_ERR } from '../memory/ring/enums.js';
export { PACKET_CIPHERS, type PacketCipherName } from '../memory/ring/protection.js';
export { QP_COUNTER_NAMES, type QpCounterName, WAIT_CAUSES } from '../memory/ring/telemetry-page.js';
export { MESSAGE_BYTES_MAX } from '../memory/ring/work-queue.js';
