/**
 * Closed windows, newest last: at most 60, an hour of minutes. They keep only buckets that hold something, and all
 * together not more of them than a bound: when busy groups would need more, the oldest windows go first.
 */

import type { GroupWindow } from './group-table.js';
import type { SparseHistogram } from './histogram.js';
import type { ConnectionTotals } from './totals.js';

const WINDOWS_MAX = 60;
/** Six bytes each. */
const HISTORY_BUCKETS_MAX = 1 << 20;
const BUCKETS_OF_CONNECTION = 128;

export interface TelemetryWindow {
  readonly startNs: number;
  readonly endNs: number;
  readonly groups: readonly GroupWindow[];
  readonly connections: ReadonlyMap<string, ConnectionTotals>;
  readonly loopDelay: SparseHistogram;
}

export class WindowHistory {
  readonly #windows: TelemetryWindow[] = [];
  #buckets = 0;
  readonly #bucketsMax: number;
  /** Windows that had to go before their hour was over. */
  droppedEarly = 0;

  constructor(bucketsMax = HISTORY_BUCKETS_MAX) {
    this.#bucketsMax = bucketsMax;
  }

  push(window: TelemetryWindow): void {
    this.#windows.push(window);
    this.#buckets += bucketsOf(window);
    if (this.#windows.length > WINDOWS_MAX) this.#shift();
    while (this.#buckets > this.#bucketsMax && this.#windows.length > 1) {
      this.#shift();
      this.droppedEarly++;
    }
  }

  since(sinceNs: number): readonly TelemetryWindow[] {
    return this.#windows.filter((window) => window.endNs > sinceNs);
  }

  #shift(): void {
    const oldest = this.#windows.shift();
    if (oldest !== undefined) this.#buckets -= bucketsOf(oldest);
  }
}

function bucketsOf(window: TelemetryWindow): number {
  let buckets = window.connections.size * BUCKETS_OF_CONNECTION;
  for (const group of window.groups) for (const stage of group.stages) buckets += stage.buckets.length;
  return buckets;
}
