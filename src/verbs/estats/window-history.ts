/**
 * Closed windows, newest last: at most 60, an hour of minutes. They keep only buckets that hold something, and all together not more of them
 * than a bound: when busy groups would need more, the oldest windows go first.
 */

import type { GroupWindow } from './group-table.js';
import type { SparseHistogram } from './histogram.js';
import type { ConnectionTotals } from './totals.js';

const WINDOWS_MAX = 60;
/** Six bytes each. */
const HISTORY_BUCKETS_MAX = 1 << 20;
/** What a connection added up in a window takes as much room as so many buckets. */
const BUCKETS_OF_CONNECTION = 128;

/** Everything that one window saw. */
export interface TelemetryWindow {
  /** On the engine's clock. */
  readonly startNs: number;
  /** On the engine's clock, exclusive. */
  readonly endNs: number;
  /** Groups that recorded something. */
  readonly groups: readonly GroupWindow[];
  /** What each connection that was open at its end added up in this window, by name. */
  readonly connections: ReadonlyMap<string, ConnectionTotals>;
  /** How late the program's event loop was, by its own timer. */
  readonly loopDelay: SparseHistogram;
}

/** The closed windows of one endpoint. */
export class WindowHistory {
  readonly #windows: TelemetryWindow[] = [];
  #buckets = 0;
  readonly #bucketsMax: number;
  /** Windows that had to go before their hour was over. */
  droppedEarly = 0;

  constructor(bucketsMax = HISTORY_BUCKETS_MAX) {
    this.#bucketsMax = bucketsMax;
  }

  /** Appends a window; the oldest ones go when there are too many or they hold too much. */
  push(window: TelemetryWindow): void {
    this.#windows.push(window);
    this.#buckets += bucketsOf(window);
    if (this.#windows.length > WINDOWS_MAX) this.#shift();
    while (this.#buckets > this.#bucketsMax && this.#windows.length > 1) {
      this.#shift();
      this.droppedEarly++;
    }
  }

  /** Windows that ended after `sinceNs`, oldest first. */
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
