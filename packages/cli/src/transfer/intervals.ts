import { NS_PER_S } from 'rocev2/internal/core';

/** One interval. */
export interface Interval {
  /** Start of the interval, in seconds from the first message. */
  readonly fromSeconds: number;
  /** End of the interval, in seconds from the first message. */
  readonly toSeconds: number;
  /** Messages completed in the interval. */
  readonly messages: number;
  /** Payload rate of the interval, in bits per second. */
  readonly goodputBps: number;
}

const INTERVALS_MAX = 10_000;

export class IntervalLog {
  readonly #startNs: number;
  readonly #intervalNs: number;
  readonly #sizeBytes: number;
  readonly #tell: (interval: Interval) => void;
  readonly #intervals: Interval[] = [];
  #beginNs: number;
  #messages = 0;

  constructor(
    startNs: number,
    { intervalNs, onInterval }: { readonly intervalNs: number; onInterval(interval: Interval): void },
    sizeBytes: number,
  ) {
    this.#startNs = startNs;
    this.#beginNs = startNs;
    this.#intervalNs = intervalNs;
    this.#sizeBytes = sizeBytes;
    this.#tell = onInterval;
  }

  add(messages: number, timeNs: number): void {
    if (this.#intervalNs === 0) return;
    this.#messages += messages;
    if (timeNs - this.#beginNs >= this.#intervalNs) this.#close(timeNs);
  }

  finish(timeNs: number): readonly Interval[] {
    if (this.#messages > 0) this.#close(timeNs);
    return this.#intervals;
  }

  #close(timeNs: number): void {
    const seconds = (timeNs - this.#beginNs) / NS_PER_S;
    const interval = {
      fromSeconds: (this.#beginNs - this.#startNs) / NS_PER_S,
      toSeconds: (timeNs - this.#startNs) / NS_PER_S,
      messages: this.#messages,
      goodputBps: seconds > 0 ? (this.#messages * this.#sizeBytes * 8) / seconds : 0,
    };
    this.#intervals.push(interval);
    if (this.#intervals.length > INTERVALS_MAX) this.#intervals.shift();
    this.#tell(interval);
    this.#beginNs = timeNs;
    this.#messages = 0;
  }
}
