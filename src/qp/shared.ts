/**
 * What the parts of a connected queue pair share: attributes, path, and the operations that concern the whole QP. Each part keeps its own
 * protocol state.
 */

import type { CongestionControl } from '../dcqcn/congestion-control.js';
import type { TxBatch } from '../port/datagram.js';
import type { QueuePairOptions } from './nic-queue-pair.js';
import type { Path } from './path.js';
import type { PeerBudget } from './peer-budget.js';
import type { PeerPort } from './peer-port.js';
import type { QpProbe } from './probe.js';

/** A connected queue pair as its parts see it. */
export interface QpShared extends Omit<QueuePairOptions, 'sendQueue'> {
  /** Path MTU in bytes. */
  readonly mtuBytes: number;
  /** Where packets go. Only while connected. */
  readonly path: Path;
  /** The queue pair's part in what the peer's socket can hold. Only while connected. */
  readonly budget: PeerBudget;
  /** The UDP source port of the peer. */
  readonly peerPort: PeerPort;
  /** Telemetry, or nothing. */
  readonly probe: QpProbe;
  /** How fast data may leave: nothing is sent before `congestion.pacer.opensNs`, except answers without data. */
  readonly congestion: CongestionControl;
  /** ECN codepoint of data packets. */
  readonly dataEcn: number;
  /** In-band telemetry that data packets ask for: the kind of their trailer, or INT_NONE. */
  readonly dataIntKind: number;
  /** The last packet of the batch is one of data: it is paid for. */
  dataSent(batch: TxBatch, now: number): void;
  /** Puts the QP on the NIC's list of those with something to send. */
  schedule(): void;
  /** In SQD, nothing that was begun is left: the owner is told, if he asked for it. */
  sendQueueDrained(): void;
  /** Raises an async event about packets that no honest peer sends, EVENT_QP_*: once a connection, however many there are; counters tell the rest. */
  warn(event: number): void;
  /** A part's deadline changed. */
  deadlineChanged(): void;
  /**
   * To ERR: flushes both queues. The first cause has been completed by the caller. With `finalNak`, pending answers still leave, the
   * NAK that names the cause last; without, nothing is sent any more. Default: without.
   */
  enterError(finalNak?: boolean): void;
}
