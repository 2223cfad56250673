/**
 * rocev2: RDMA for Node.js without an RDMA NIC.
 *
 * The promise API is `openDevice`, `listen` and `connect`; below it lie verbs as in libibverbs and pyverbs.
 *
 * @module rocev2
 */

export type { CmConnection } from './cm/cm-connection.js';
export type { CmLimits } from './cm/cm-limits.js';
export type { CmListener, WaitingRequest } from './cm/cm-listener.js';
export type { CmAcceptOptions, CmRequest } from './cm/cm-request.js';
export { Connection, type ReceiveOptions, type SendOptions } from './cm/connection.js';
export {
  type CmConnectOptions,
  ConnectionManager,
  type ConnectionManagerOptions,
} from './cm/connection-manager.js';
export type { ConnectionOptions } from './cm/connection-parts.js';
export { ConnectionRejected } from './cm/connection-rejected.js';
export {
  type DatagramAcceptOptions,
  type DatagramRequest,
  type DatagramService,
  type ResolveOptions,
  ServiceRejected,
  startDatagrams,
} from './cm/datagram-services.js';
export type { Agreement, RemoteRegion } from './cm/exchange.js';
export type { Message } from './cm/inbox.js';
export { type ConnectOptions, connect, listen } from './cm/listen-connect.js';
export {
  Listener,
  type ListenerCounters,
  type ListenerEvents,
  type ListenOptions,
  type Refusal,
  type RefusalReason,
} from './cm/listener.js';
export type { Memory } from './cm/memory.js';
export type { CmCounters } from './cm/protocol-parts.js';
export type { CmConnectionOptions } from './cm/qp-parameters.js';
export type { Destination } from './cm/queue-pair-setup.js';
export type { ConnectionStream, StreamOptions } from './cm/stream/duplex.js';
export type { WebStreams } from './cm/stream/web.js';
export type { CmTiming } from './cm/timing.js';
export { type WarmUpOptions, warmUp } from './cm/warm-up.js';
export { RoceError, type RoceErrorCode } from './core/errors.js';
export type { ParameterRange, ParametersOf, ParameterTable } from './core/parameters.js';
export { WaitEnded, type WaitOptions } from './core/wait.js';
export { DCQCN_PRESETS, type DcqcnPreset, type DcqcnPresetName } from './dcqcn/presets.js';
export {
  type Acknowledgement,
  RateControl,
  type RateControlDefinition,
  type RegisteredRateControls,
} from './dcqcn/rate-control.js';
export {
  type RateControlName,
  type RateControlOptions,
  type RateControlSettings,
  rateControlNames,
  registerRateControl,
} from './dcqcn/rate-controls.js';
export { COUNTER_TEXTS } from './memory/ring/counter-texts.js';
export { COUNTER_NAMES, type CounterName } from './memory/ring/counters.js';
export {
  type QpStateName,
  type QpTypeName,
  statusName,
  statusText,
  type WcOpcodeName,
  type WcStatusName,
} from './memory/ring/enums.js';
export type { Sge } from './memory/ring/work-queue.js';
export { IpAddress } from './packet/address.js';
export { senderInGrh } from './packet/grh.js';
export { GoBackNReceiver, GoBackNSender } from './retransmit/go-back-n.js';
export type { NicContext } from './retransmit/nic-context.js';
export {
  PACKET_DELIVERED,
  PACKET_LOST,
  PACKET_OUTSTANDING,
  PACKET_RESENT,
  PACKET_SACKED,
  PacketAccounts,
  SELECTIVE_SPAN,
  SPAN_MASK,
} from './retransmit/packet-accounts.js';
export {
  AHEAD_BUFFERED,
  AHEAD_CONFLICT,
  AHEAD_DROPPED,
  AHEAD_NAK,
  AHEAD_RESTART_MESSAGE,
  type BufferedPacket,
  LOSS_DROPPED,
  LOSS_REPORTED,
  LOSS_TIMEOUT,
  type LossModel,
  NO_REWIND,
  REPLAY_APPEND,
  REPLAY_REWIND,
  ReceiverRecovery,
  type RecoveryDefinition,
  type RegisteredRecoveries,
  SenderRecovery,
} from './retransmit/recovery.js';
export {
  type RecoveryName,
  type RecoveryOptions,
  type RecoverySettings,
  recoveryNames,
  registerRecovery,
} from './retransmit/recovery-schemes.js';
export { SelectiveRepeatReceiver, SelectiveRepeatSender } from './retransmit/selective-repeat.js';
export { Access } from './verbs/access.js';
export type { AddressHandle } from './verbs/address-handle.js';
export {
  type CompletionQueue,
  type CompletionWaitOptions,
  checkCompletion,
  describeCompletion,
  type WorkCompletion,
  type WrId,
} from './verbs/completion-queue.js';
export type { DeviceAttributes, DeviceEvents, RdmaDevice } from './verbs/device.js';
export type { EstatsOptions } from './verbs/device-telemetry.js';
export type { FastRegisterMemoryRegion, MemoryRegion, MemorySlice, ReregisterOptions } from './verbs/memory-region.js';
export type { MemoryWindow } from './verbs/memory-window.js';
export { type DeviceOptions, type EngineName, openDevice } from './verbs/open-device.js';
export type { ProtectionDomain, RegisterOptions } from './verbs/protection-domain.js';
export type { AddressVector, QpAttr, QpInfo, RemoteSourcePort } from './verbs/qp-attributes.js';
export type { QueuePair, QueuePairInit } from './verbs/queue-pair.js';
export type { RecvWorkRequest } from './verbs/receive-ring.js';
export type { PreSharedKey, SecureMode, SecureOptions } from './verbs/security.js';
export type { SendWorkRequest } from './verbs/send-work-request.js';
export type { SharedReceiveQueue } from './verbs/shared-receive-queue.js';
