/** What a queue pair sees of the NIC around it. The NIC implements these; queue pairs never import it. */

import type { CreditScheduler } from '../dcqcn/credit-scheduler.js';
import type { KeyTable } from '../memory/key-table.js';
import type { QpAttributes } from '../memory/ring/commands.js';
import type { Cqe } from '../memory/ring/completion-ring.js';
import type { RecvWqe } from '../memory/ring/work-queue.js';
import type { IcrcFlow } from '../packet/icrc.js';
import type { RxDatagram, TxBatch } from '../port/datagram.js';
import type { NicContext } from '../retransmit/nic-context.js';
import type { Connection, Path } from './path.js';

/** Where completions go: the NIC's side of a completion queue. */
export interface CompletionSink {
  /** Copies the record. A full queue breaks the CQ and, with it, its queue pairs. */
  complete(cqe: Cqe): void;
}

/** A receive queue of the QP's own, or one shared with others. */
export interface ReceiveSource {
  /** Takes the oldest receive WQE into `out`; false when there is none. */
  take(out: RecvWqe): boolean;
  /** True for an SRQ, whose elements are not flushed with the QP. */
  readonly shared: boolean;
}

/** What has a timer at the NIC. */
export interface Timed {
  /** The earliest time at which `onDeadline` has something to do; Infinity: never. */
  deadlineNs: number;
  /** A deadline has passed. Harmless when called too early. */
  onDeadline(now: number): void;
}

/** What the NIC schedules: a queue pair of any type. */
export interface Schedulable extends Timed {
  /** Queue pair number, 24 bits. */
  readonly qpn: number;
  /** Set while the QP waits in the NIC's round-robin. */
  scheduled: boolean;
}

/** A queue pair that may have to wait for its pacer. The NIC's queue of those that wait keeps its place in these fields. */
export interface Paced {
  /** True while it stands in that queue. */
  isWaiting: boolean;
  /** When it may go on, in ns. */
  resumeNs: number;
  /** Orders equal times. */
  resumeSequence: number;
  /** The time has come. */
  schedule(): void;
}

/** A queue pair whose packets may be marked by switches, so that it notifies the sender (annex A17.9.3). */
export interface NotificationSender {
  /** Congestion notifications that have yet to be sent. */
  cnpsPending: number;
  /** Sends one to the peer; false when there is no peer to send it to. */
  emitCnp(batch: TxBatch, now: number): boolean;
}

/** The NIC as a queue pair sees it. */
export interface QpHost {
  /** Keys of the regions and windows: the one access check. */
  readonly keys: KeyTable;
  /** By {@link COUNTER}. */
  readonly counters: Float64Array;
  /** What recovery schemes keep for the NIC. */
  readonly context: NicContext;
  /** Grants credit to the connections whose peers want some. */
  readonly creditScheduler: CreditScheduler;
  /** How late a paced flow may be served and still catch up. */
  readonly pacingCatchUpNs: number;
  /** False: packets have the length of their payload and none of its bytes. */
  readonly carriesPayload: boolean;
  /** The largest path MTU that the port carries, in bytes; also the longest UD message. */
  readonly pathMtuMax: number;
  /** The identification the next datagram will carry. */
  nextIpId(): number;
  /** The QP has, or may have, something to send. */
  schedule(qp: Schedulable): void;
  /** `timed.deadlineNs` moved to an earlier time. */
  armDeadline(timed: Timed): void;
  /** How much later than `stampNs` the packets left that were made then, in ns; 0 unless their batch was held up. */
  heldUpNs(stampNs: number): number;
  /** Schedules the queue pair at that time; one that waits already keeps its time. */
  resumeAt(qp: Paced, timeNs: number): void;
  /** The queue pair does not wait any more. */
  cancelResume(qp: Paced): void;
  /** The queue pair has one more notification to send, before all data. */
  notifyCongestion(qp: NotificationSender): void;
  /** Async event to the application. */
  raise(type: number, id: number): void;
  /**
   * The path to the peer that `attributes` name, and a share of its socket. Throws ERR_ROCE_ADDRESS_FAMILY for an address of the other
   * family.
   */
  connect(qpn: number, attributes: QpAttributes): Connection;
  /** A connection that {@link connect} gave carries no more data: its share is free for others. Harmless when repeated. */
  disconnect(connection: Connection): void;
  /** The path of an address handle; undefined when it does not exist or belongs to another PD. */
  pathOf(ah: number, pd: number): Path | undefined;
  /** ICRC state of datagrams from this peer to this NIC, for queue pairs that have many peers. */
  datagramFlow(datagram: RxDatagram): IcrcFlow;
}
