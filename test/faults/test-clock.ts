import type { Clock } from '../../src/core/clock.js';

/** A clock whose time a test sets. */
export class TestClock implements Clock {
  #nowNs = 0;
  readonly #timers = new Set<{ readonly timeNs: number; readonly wake: () => void }>();

  nowNs(): number {
    return this.#nowNs;
  }

  wakeAt(timeNs: number, wake: () => void): () => void {
    const timer = { timeNs, wake };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  goTo(timeNs: number): void {
    this.#nowNs = timeNs;
    for (const timer of [...this.#timers]) {
      if (timer.timeNs > timeNs) continue;
      this.#timers.delete(timer);
      timer.wake();
    }
  }
}
