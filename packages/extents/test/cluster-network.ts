import { type RandomSource, randomInt, randomUnit } from '../../../src/core/random.js';
import type { EventQueue } from '../../lab/src/sim/event-queue.js';

const US = 1000;

/** Carries messages between named machines. Each arrives in order, or is lost. */
export class ClusterNetwork {
  lossRate = 0;
  /** Whether it has no faults any more. */
  isEnded = false;
  /** Whether machines may be cut off at any time, beside other faults. */
  isSwizzled = false;
  readonly #cut = new Set<string>();
  readonly #last = new Map<string, number>();
  readonly #events: EventQueue;
  readonly #random: RandomSource;

  constructor(events: EventQueue, random: RandomSource) {
    this.#events = events;
    this.#random = random;
  }

  cut(from: string, to: string): void {
    this.#cut.add(`${from}>${to}`);
  }

  chance(rate: number): boolean {
    return rate > 0 && randomUnit(this.#random) < rate;
  }

  heal(): void {
    this.#cut.clear();
  }

  /** Nothing is lost any more. */
  end(): void {
    this.heal();
    this.lossRate = 0;
    this.isEnded = true;
  }

  send(from: string, to: string, deliver: () => void): void {
    const link = `${from}>${to}`;
    if (this.#cut.has(link) || randomUnit(this.#random) < this.lossRate) return;
    const soonest = this.#events.nowNs + randomInt(this.#random, 10, 150) * US;
    const atNs = Math.max(soonest, (this.#last.get(link) ?? 0) + 1);
    this.#last.set(link, atNs);
    this.#events.at(atNs, deliver);
  }
}
