/**
 * Internals of verbs that the packages of this repository use. No part of the public API: it changes without notice.
 */

export { Access } from '../verbs/access.js';
export {
  type CompletionQueue,
  checkCompletion,
  completionError,
  type WorkCompletion,
} from '../verbs/completion-queue.js';
export { RdmaDevice } from '../verbs/device.js';
export type { MemoryRegion } from '../verbs/memory-region.js';
export { type DeviceOptions, ENGINES, type EngineName, openDevice } from '../verbs/open-device.js';
export type { ProtectionDomain } from '../verbs/protection-domain.js';
export type { QueuePair } from '../verbs/queue-pair.js';
export { SECURE_MODES, type SecureMode, type SecureOptions } from '../verbs/security.js';
export type { SendWorkRequest } from '../verbs/send-work-request.js';
export type { SharedReceiveQueue } from '../verbs/shared-receive-queue.js';
