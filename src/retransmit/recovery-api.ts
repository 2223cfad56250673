/**
 * What code that defines a recovery scheme imports from `rocev2` (docs/extending.md), where that entry cannot be
 * loaded.
 */

import { GoBackNReceiver, GoBackNSender } from './go-back-n.js';
import {
  PACKET_DELIVERED,
  PACKET_LOST,
  PACKET_OUTSTANDING,
  PACKET_RESENT,
  PACKET_SACKED,
  PacketAccounts,
  SELECTIVE_SPAN,
  SPAN_MASK,
} from './packet-accounts.js';
import {
  AHEAD_BUFFERED,
  AHEAD_CONFLICT,
  AHEAD_DROPPED,
  AHEAD_NAK,
  AHEAD_RESTART_MESSAGE,
  LOSS_DROPPED,
  LOSS_REPORTED,
  LOSS_TIMEOUT,
  NO_REWIND,
  REPLAY_APPEND,
  REPLAY_REWIND,
  ReceiverRecovery,
  SenderRecovery,
} from './recovery.js';
import { registerRecovery } from './recovery-schemes.js';
import { SelectiveRepeatReceiver, SelectiveRepeatSender } from './selective-repeat.js';

export const RECOVERY_API = {
  AHEAD_BUFFERED,
  AHEAD_CONFLICT,
  AHEAD_DROPPED,
  AHEAD_NAK,
  AHEAD_RESTART_MESSAGE,
  GoBackNReceiver,
  GoBackNSender,
  LOSS_DROPPED,
  LOSS_REPORTED,
  LOSS_TIMEOUT,
  NO_REWIND,
  PACKET_DELIVERED,
  PACKET_LOST,
  PACKET_OUTSTANDING,
  PACKET_RESENT,
  PACKET_SACKED,
  PacketAccounts,
  REPLAY_APPEND,
  REPLAY_REWIND,
  ReceiverRecovery,
  registerRecovery,
  SELECTIVE_SPAN,
  SPAN_MASK,
  SelectiveRepeatReceiver,
  SelectiveRepeatSender,
  SenderRecovery,
};
