/** The NIC as a queue pair sees it. The NIC implements these; queue pairs never import it. */

import type { CreditScheduler } from '../dcqcn/credit-scheduler.js';
import type { KeyTable } from '../memory/key-table.js';
import type { QpAttributes } from '../memory/ring/commands.js';
import type { Cqe } from '../memory/ring/completion-ring.js';
import type { RecvWqe } from '../memory/ring/work-queue.js';
import type { IcrcFlow } from '../packet/icrc.js';
import type { RxDatagram, TxBatch } from '../port/datagram.js';
import type { NicContext } from '../retransmit/nic-context.js';
import type { ConnectedPeer, Path } from './path.js';

export interface CompletionSink {
  /** A full queue breaks the CQ and, with it, its queue pairs. */
  complete(cqe: Cqe): void;
}

export interface ReceiveSource {
  /** Takes the oldest receive WQE into `out`; false when there is none. */
  take(out: RecvWqe): boolean;
  /** True for an SRQ, whose elements are not flushed with the QP. */
  readonly shared: boolean;
}

/** An object that has a timer at the NIC. */
export interface Timed {
  /** The earliest time at which `onDeadline` has something to do; Infinity: never. */
  deadlineNs: number;
  /** Harmless when called too early. */
  onDeadline(now: number): void;
}

export interface Schedulable extends Timed {
  /** Queue pair number, 24 bits. */
  readonly qpn: number;
  /** Set while the QP waits in the NIC's round-robin. */
  scheduled: boolean;
}

export interface Paced {
  isWaiting: boolean;
  resumeNs: number;
  resumeSequence: number;
  schedule(): void;
}

/** A queue pair whose packets may be marked by switches, so that it notifies the sender (annex A17.9.3). */
export interface NotificationSender {
  cnpsPending: number;
  /** Sends one to the peer; false when there is no peer to send it to. */
  emitCnp(batch: TxBatch, now: number): boolean;
}

export interface QpHost {
  readonly keys: KeyTable;
  readonly counters: Float64Array;
  /** State of recovery schemes that is shared in the NIC. */
  readonly context: NicContext;
  /** Grants credit to the connections whose peers want some. */
  readonly creditScheduler: CreditScheduler;
  /** How late a paced flow may be served and still catch up. */
  readonly pacingCatchUpNs: number;
  /** False: packets have the length of their payload, but not its bytes. */
  readonly carriesPayload: boolean;
  /** The largest path MTU that the port carries, in bytes; also the longest UD message. */
  readonly pathMtuMax: number;
  nextIpId(): number;
  schedule(qp: Schedulable): void;
  /** `timed.deadlineNs` moved to an earlier time. */
  armDeadline(timed: Timed): void;
  /** Delay in ns between `stampNs` and the sending of packets that were made then; 0 unless their batch was delayed. */
  schedulingDelayNs(stampNs: number): number;
  /** Schedules the queue pair at that time; a queue pair that already waits keeps its time. */
  resumeAt(qp: Paced, timeNs: number): void;
  cancelResume(qp: Paced): void;
  /** The queue pair has one more notification to send, before all data. */
  notifyCongestion(qp: NotificationSender): void;
  raise(type: number, id: number): void;
  connect(qpn: number, attributes: QpAttributes): ConnectedPeer;
  /** Harmless when repeated. */
  disconnect(connection: ConnectedPeer): void;
  /** The path of an address handle; undefined when it does not exist or belongs to another PD. */
  pathOf(ah: number, pd: number): Path | undefined;
  /** ICRC state of datagrams from this peer to this NIC, for queue pairs that have many peers. */
  datagramFlow(datagram: RxDatagram): IcrcFlow;
}
