/**
 * The interface through which the NIC uses queue pairs of all transports. The NIC never checks the type of a queue
 * pair; these methods hide the differences. `queue-pair-types.ts` lists the types.
 */

import type { RateControl } from '../dcqcn/rate-control.js';
import type { CommandResult, QpAttributes } from '../memory/ring/commands.js';
import type { SendQueue } from '../memory/ring/work-queue.js';
import type { IcrcFlow } from '../packet/icrc.js';
import type { RocePacket } from '../packet/roce.js';
import type { RxDatagram, TxBatch } from '../port/datagram.js';
import type { CompletionSink, QpHost, ReceiveSource, Schedulable } from './host.js';

export interface QueuePairOptions {
  readonly host: QpHost;
  /** 24 bits, unique on this NIC. */
  readonly qpn: number;
  readonly pd: number;
  readonly sendCq: CompletionSink;
  readonly recvCq: CompletionSink;
  /** Where receive work requests come from: its own queue or an SRQ. */
  readonly receives: ReceiveSource;
  readonly sendQueue: SendQueue;
  readonly signalAll: boolean;
  readonly attributes: QpAttributes;
}

/** PSNs as `queryQp` reports them: the next one to be sent, and the one expected next. */
export interface NextPsns {
  readonly sqPsn: number;
  /** Expected from the peer; 0 for datagrams. */
  readonly rqPsn: number;
}

export type QpProgress = CommandResult<'inspectQp'>;

/** Which datagrams may be a peer's, and how they are checked. */
export interface PeerAddressing {
  /** True when both addresses of the datagram are those of the queue pair and its peer. */
  matchesAddresses(datagram: RxDatagram): boolean;
  /**
   * True when the packet comes from the UDP source port of the queue pair's peer, as far as there is one and it is
   * known.
   */
  matchesSourcePort(packet: RocePacket, datagram: RxDatagram): boolean;
  receiveFlow(datagram: RxDatagram): IcrcFlow;
  readonly sourcePort: number;
  /** UDP source port of the peer's packets, or SOURCE_PORT_LEARN or SOURCE_PORT_ANY. */
  readonly remoteSourcePort: number;
}

export interface NicQueuePair extends Schedulable {
  readonly attributes: QpAttributes;
  /** The peer, or all peers of a queue pair without a connection. */
  readonly peer: PeerAddressing;

  // ---- the checks of the receive path, in the order of the NIC (IBTA vol. 1 §9.6)

  /** True when the packet's transport is the queue pair's, or an extension that was agreed. */
  carries(packet: RocePacket): boolean;
  /** True when a packet of this kind is processed in the current state (IBTA §10.3.1). */
  accepts(packet: RocePacket): boolean;
  /** True when the packet carries the queue pair's Q_Key, or its transport has none. */
  matchesQkey(packet: RocePacket): boolean;
  receive(packet: RocePacket, datagram: RxDatagram, now: number): void;

  doorbell(): void;
  /** DSCP of the next packet, which decides its priority; 0 when there is none to send. */
  readonly nextDscp: number;
  /** Sends at most one packet; false when there is nothing to send now. */
  emit(batch: TxBatch, now: number): boolean;

  /**
   * Throws ERR_ROCE_INVALID_STATE, ERR_ROCE_INVALID_ARGUMENT, ERR_ROCE_OUT_OF_RANGE or ERR_ROCE_CONFLICT, and then has
   * changed nothing.
   */
  modify(mask: number, values: QpAttributes): void;
  /**
   * Executes no more requests of the peer. True: answers to earlier ones are still to be sent, and EVENT_QP_SETTLED
   * follows the last.
   */
  settle(): boolean;
  /** To ERR, by a broken completion queue: both queues are flushed. */
  enterError(): void;
  /** The queue pair is destroyed: windows that it bound are invalid, nothing is completed. */
  destroy(): void;
  readonly nextPsns: NextPsns;
  readonly isDraining: boolean;
  readonly rate: RateControl;
  watch(memory: ArrayBufferLike): void;
  readonly progress: QpProgress;
}
