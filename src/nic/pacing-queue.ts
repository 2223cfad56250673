/**
 * Queue pairs that wait for their pacer, by the time at which they may continue. Unlike timers, these times never move
 * while they wait, so the queue pair itself is the entry and nothing is allocated.
 */

import TinyQueue from 'tinyqueue';
import type { Paced } from '../qp/host.js';

/** Equal times resume in the order they began to wait, so that runs repeat exactly. */
function order(a: Paced, b: Paced): number {
  return a.resumeNs - b.resumeNs || a.resumeSequence - b.resumeSequence;
}

export class PacingQueue {
  #heap = new TinyQueue<Paced>([], order);
  #sequence = 0;
  nextNs: number = Number.POSITIVE_INFINITY;

  add(qp: Paced, timeNs: number): void {
    if (qp.isWaiting) return;
    qp.isWaiting = true;
    qp.resumeNs = timeNs;
    qp.resumeSequence = this.#sequence++;
    this.#heap.push(qp);
    if (timeNs < this.nextNs) this.nextNs = timeNs;
  }

  /** Removes a queue pair: its rate has changed, or it was destroyed. */
  remove(qp: Paced): void {
    if (!qp.isWaiting) return;
    qp.isWaiting = false;
    this.#heap = new TinyQueue(
      this.#heap.data.filter((other) => other !== qp),
      order,
    );
    this.#noteNext();
  }

  release(now: number): void {
    if (now < this.nextNs) return;
    for (let qp = this.#heap.peek(); qp !== undefined && qp.resumeNs <= now; qp = this.#heap.peek()) {
      this.#heap.pop();
      this.#noteNext();
      qp.isWaiting = false;
      qp.schedule();
    }
  }

  #noteNext(): void {
    this.nextNs = this.#heap.peek()?.resumeNs ?? Number.POSITIVE_INFINITY;
  }
}
