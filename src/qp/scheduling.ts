/** Requests of a queue pair to the schedulers of its NIC: to send, now or when its pacer opens, and a timer. */

import type { Paced, QpHost, Schedulable } from './host.js';

export class Scheduling implements Paced {
  isWaiting = false;
  resumeNs = 0;
  resumeSequence = 0;
  readonly #host: QpHost;
  readonly #entry: Schedulable;

  /** `entry` is what the NIC keeps in its run queue and among its timers. */
  constructor(host: QpHost, entry: Schedulable) {
    this.#host = host;
    this.#entry = entry;
  }

  schedule(): void {
    this.#host.schedule(this.#entry);
  }

  /** Schedules the queue pair at `timeNs`. */
  resumeAt(timeNs: number): void {
    this.#host.resumeAt(this, timeNs);
  }

  cancelResume(): void {
    this.#host.cancelResume(this);
  }

  /** When the timer runs out; Infinity: it is stopped. */
  get deadlineNs(): number {
    return this.#entry.deadlineNs;
  }

  set deadlineNs(timeNs: number) {
    this.#entry.deadlineNs = timeNs;
    this.#host.armDeadline(this.#entry);
  }
}
