/** What a queue pair sees of the NIC around it. The NIC implements these; queue pairs never import it. */

import type { KeyTable } from '../memory/key-table.js';
import type { Cqe } from '../ring/completion-ring.js';
import type { RecvWqe } from '../ring/work-queue.js';

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

/** What the NIC schedules: a queue pair of any type. */
export interface Schedulable {
  readonly qpn: number;
  /** Set while the QP waits in the NIC's round-robin. */
  scheduled: boolean;
  /** The earliest time at which `onDeadline` has something to do; Infinity: never. */
  deadlineNs: number;
}

/** A queue pair that may have to wait for its pacer. The NIC's queue of those that wait keeps its place in these fields. */
export interface Paced {
  isWaiting: boolean;
  resumeNs: number;
  resumeSequence: number;
  /** The time has come. */
  schedule(): void;
}

export interface QpHost {
  readonly keys: KeyTable;
  readonly counters: Float64Array;
  /** How late a paced flow may be served and still catch up. */
  readonly pacingCatchUpNs: number;
  /** The identification the next datagram will carry. */
  nextIpId(): number;
  /** The QP has, or may have, something to send. */
  schedule(qp: Schedulable): void;
  /** `qp.deadlineNs` moved to an earlier time. */
  armDeadline(qp: Schedulable): void;
  /** Schedules the queue pair at that time; one that waits already keeps its time. */
  resumeAt(qp: Paced, timeNs: number): void;
  /** The queue pair does not wait any more. */
  cancelResume(qp: Paced): void;
  /** Async event to the application. */
  raise(type: number, id: number): void;
}
