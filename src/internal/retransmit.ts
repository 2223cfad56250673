/**
 * Internals of retransmit that the packages of this repository use. No part of the public API: it changes without
 * notice.
 */

export type { LossModel } from '../retransmit/recovery.js';
export { RECOVERY_API } from '../retransmit/recovery-api.js';
export {
  createSender,
  type RecoveryName,
  type RecoveryOptions,
  recoveryNames,
  recoveryNamesByWaste,
  recoverySchemes,
  recoverySettings,
  STANDARD_RECOVERY,
  senderTraits,
} from '../retransmit/recovery-schemes.js';
export { ackTimeoutNs } from '../retransmit/timers.js';
