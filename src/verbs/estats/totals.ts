import type { QpCounterName, WaitCause } from '../../memory/ring/telemetry-page.js';

/** Times in nanoseconds. */
export interface ConnectionTotals {
  /** Standing still with something to send, by cause. */
  readonly waitsNs: Readonly<Record<WaitCause, number>>;
  /** With at least one work request between T2 and T5. */
  readonly activeNs: number;
  /** Waiting for acknowledgements that never came. */
  readonly timeoutsNs: number;
  /** The program's event loop was stalled, with work posted and not sent. */
  readonly stalledUnsentNs: number;
  /** The program's event loop was stalled, and packets of this connection were received when it continued. */
  readonly stalledUnheardNs: number;
  /** Packets, retransmissions and the like, by name. */
  readonly counters: Readonly<Record<QpCounterName, number>>;
}

/** a + b, or with `sign` -1 what was added since b. */
export function addTotals(a: ConnectionTotals, b: ConnectionTotals, sign: 1 | -1): ConnectionTotals {
  return {
    waitsNs: addRecords(a.waitsNs, b.waitsNs, sign),
    activeNs: a.activeNs + sign * b.activeNs,
    timeoutsNs: a.timeoutsNs + sign * b.timeoutsNs,
    stalledUnsentNs: a.stalledUnsentNs + sign * b.stalledUnsentNs,
    stalledUnheardNs: a.stalledUnheardNs + sign * b.stalledUnheardNs,
    counters: addRecords(a.counters, b.counters, sign),
  };
}

function addRecords<K extends string>(
  a: Readonly<Record<K, number>>,
  b: Readonly<Record<K, number>>,
  sign: 1 | -1,
): Record<K, number> {
  return Object.fromEntries((Object.keys(a) as K[]).map((key) => [key, a[key] + sign * b[key]])) as Record<K, number>;
}
