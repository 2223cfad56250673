/**
 * The NIC's timers: the earliest deadline of each queue pair in one heap. A deadline that moves later (every acknowledgement moves the
 * retransmission timer) costs nothing: the old entry stays and is found premature when it fires.
 */

import TinyQueue from 'tinyqueue';
import type { Schedulable } from '../qp/host.js';

/** A time at which a queue pair may have something to do. */
interface Entry {
  readonly timeNs: number;
  readonly sequence: number;
  qp: Schedulable;
}

/** The deadlines of all queue pairs of one NIC. */
export class Deadlines {
  /** Equal times fire in the order they were armed, so that runs repeat exactly. */
  protected readonly heap = new TinyQueue<Entry>([], (a, b) => a.timeNs - b.timeNs || a.sequence - b.sequence);
  /** The time of the newest entry of each QP: others of it are void. */
  protected readonly armed = new Map<Schedulable, number>();
  #sequence = 0;

  /** The queue pair's `deadlineNs` is new. Later than before or Infinity: nothing happens until the old one fires. */
  arm(qp: Schedulable): void {
    const armed = this.armed.get(qp);
    if (qp.deadlineNs === Number.POSITIVE_INFINITY || (armed !== undefined && armed <= qp.deadlineNs)) return;
    this.armed.set(qp, qp.deadlineNs);
    this.heap.push({ timeNs: qp.deadlineNs, sequence: this.#sequence++, qp });
  }

  /** The queue pair is no more. */
  forget(qp: Schedulable): void {
    this.armed.delete(qp);
  }

  /** Not later than the earliest deadline; Infinity when there is none. */
  get nextNs(): number {
    return this.heap.peek()?.timeNs ?? Number.POSITIVE_INFINITY;
  }

  /** Calls all queue pairs whose deadline is not after `now`. */
  fire(now: number): void {
    for (let entry = this.heap.peek(); entry !== undefined && entry.timeNs <= now; entry = this.heap.peek()) {
      this.heap.pop();
      const { qp } = entry;
      if (this.armed.get(qp) !== entry.timeNs) continue;
      this.armed.delete(qp);
      if (now >= qp.deadlineNs) qp.onDeadline(now);
      this.arm(qp);
    }
  }
}
