/** Latency of the last one to two minutes: a window that is open and the one before. */

import { Histogram } from './histogram.js';

const WINDOW_NS = 60e9;

export class RecentLatency {
  readonly #nowNs: () => number;
  #open = new Histogram();
  #before = new Histogram();
  #endNs: number;

  constructor(nowNs: () => number) {
    this.#nowNs = nowNs;
    this.#endNs = nowNs() + WINDOW_NS;
  }

  record(ns: number): void {
    this.#advance();
    this.#open.record(ns);
  }

  histogram(): Histogram {
    this.#advance();
    const both = new Histogram();
    both.add(this.#before.toSparse());
    both.add(this.#open.toSparse());
    return both;
  }

  #advance(): void {
    const nowNs = this.#nowNs();
    if (nowNs < this.#endNs) return;
    const missed = Math.floor((nowNs - this.#endNs) / WINDOW_NS);
    const closed = this.#open;
    this.#open = this.#before;
    this.#before = closed;
    this.#open.reset();
    if (missed > 0) this.#before.reset(); // No request for a whole window.
    this.#endNs += (missed + 1) * WINDOW_NS;
  }
}
