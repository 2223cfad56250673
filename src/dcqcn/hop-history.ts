/**
 * Switch records of the last echo next to those of this one (packet/int-trailer.ts). A path with another number of hops
 * restarts the history.
 */

import { type HopRecord, INT_HOPS_MAX, type IntEcho, newHopRecord } from '../packet/int-trailer.js';

const WRAP = 0x1_0000_0000;

export interface HopInterval {
  /** Time between the two records, ns, above 0. */
  elapsedNs: number;
  /** Rate of the port in the interval, bits/s. */
  sentBps: number;
  queueBeforeBytes: number;
  queueBytes: number;
  /** Line rate, bits/s. */
  rateBps: number;
}

export class HopHistory {
  readonly #last: readonly HopRecord[] = Array.from({ length: INT_HOPS_MAX }, newHopRecord);
  #count = 0;
  readonly #interval: HopInterval = { elapsedNs: 0, sentBps: 0, queueBeforeBytes: 0, queueBytes: 0, rateBps: 0 };

  /** Hops that this echo can be compared at: 0 for the first one, or another path. */
  comparable(echo: Readonly<IntEcho>): number {
    return echo.hopCount === this.#count ? this.#count : 0;
  }

  /** Reused by the next call. */
  since(echo: Readonly<IntEcho>, hop: number): Readonly<HopInterval> | undefined {
    const last = this.#last[hop];
    const { timeNs, sentBytes, queueBytes, rateBps } = echo.hops[hop];
    const elapsedNs = (timeNs - last.timeNs + WRAP) % WRAP;
    // An echo of a packet that was overtaken: its records are older.
    if (elapsedNs === 0 || elapsedNs > WRAP / 2 || rateBps === 0) return undefined;
    const interval = this.#interval;
    interval.elapsedNs = elapsedNs;
    interval.sentBps = (((sentBytes - last.sentBytes + WRAP) % WRAP) * 8e9) / elapsedNs;
    interval.queueBeforeBytes = last.queueBytes;
    interval.queueBytes = queueBytes;
    interval.rateBps = rateBps;
    return interval;
  }

  keep(echo: Readonly<IntEcho>): void {
    this.#count = echo.hopCount;
    for (let i = 0; i < echo.hopCount; i++) Object.assign(this.#last[i], echo.hops[i]);
  }
}
