/**
 * The NIC's timers: the earliest deadline of each queue pair in one heap. A deadline that moves later (every
 * acknowledgement moves the retransmission timer) costs nothing: the old entry stays, and is ignored when it fires too
 * early.
 */

import TinyQueue from 'tinyqueue';
import type { Timed } from '../qp/host.js';

/** A time at which something may be due. */
interface Entry {
  readonly timeNs: number;
  readonly sequence: number;
  timed: Timed | undefined;
}

export class Deadlines {
  /** Equal times fire in the order they were armed, so that runs repeat exactly. */
  readonly #heap = new TinyQueue<Entry>([], (a, b) => a.timeNs - b.timeNs || a.sequence - b.sequence);
  /** The time of the newest entry of each: older ones are void. */
  readonly #armed = new Map<Timed, number>();
  #sequence = 0;
  /** Not later than the earliest deadline; Infinity when there is none. */
  nextNs: number = Number.POSITIVE_INFINITY;

  /** `timed.deadlineNs` is new. Later than before or Infinity: nothing happens until the old one fires. */
  arm(timed: Timed): void {
    const armed = this.#armed.get(timed);
    if (timed.deadlineNs === Number.POSITIVE_INFINITY || (armed !== undefined && armed <= timed.deadlineNs)) return;
    this.#armed.set(timed, timed.deadlineNs);
    this.#heap.push({ timeNs: timed.deadlineNs, sequence: this.#sequence++, timed });
    if (timed.deadlineNs < this.nextNs) this.nextNs = timed.deadlineNs;
  }

  /** Its entries stay, but do not keep it in memory. */
  forget(timed: Timed): void {
    this.#armed.delete(timed);
    for (const entry of this.#heap.data) if (entry.timed === timed) entry.timed = undefined;
  }

  /** Calls all whose deadline is not after `now`. */
  fire(now: number): void {
    if (now < this.nextNs) return;
    for (let entry = this.#heap.peek(); entry !== undefined && entry.timeNs <= now; entry = this.#heap.peek()) {
      this.#heap.pop();
      this.nextNs = this.#heap.peek()?.timeNs ?? Number.POSITIVE_INFINITY;
      const { timed } = entry;
      if (timed === undefined || this.#armed.get(timed) !== entry.timeNs) continue;
      this.#armed.delete(timed);
      if (now >= timed.deadlineNs) timed.onDeadline(now);
      this.arm(timed);
    }
  }
}
