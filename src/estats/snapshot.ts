/**
 * The telemetry of an endpoint as one JSON document: what `GET /estats.json` answers and the commands read. Times are nanoseconds unless
 * their name says otherwise.
 */

import { z } from 'zod';
import { QP_COUNTER_NAMES, WAIT_CAUSES } from '../ring/telemetry-page.js';
import type { Estats } from './estats.js';
import { STAGES } from './stages.js';
import type { TelemetryWindow } from './window-history.js';
import { type MergedGroup, mergeWindows } from './window-merge.js';

const number = z.number();

const summarySchema = z.object({
  count: number,
  sumNs: number,
  minNs: number,
  p50Ns: number,
  p90Ns: number,
  p99Ns: number,
  p999Ns: number,
  maxNs: number,
});

/** An enum of names that are kept as a list. */
const nameOf = <T extends string>(names: readonly T[]) => z.enum(names as readonly [T, ...T[]]);

const totalsSchema = z.object({
  waitsNs: z.record(nameOf(WAIT_CAUSES), number),
  activeNs: number,
  timeoutsNs: number,
  stalledUnsentNs: number,
  stalledUnheardNs: number,
  counters: z.record(nameOf(QP_COUNTER_NAMES), number),
});

const snapshotSchema = z.object({
  version: z.literal(1),
  pid: number,
  /** The endpoint's IP address. */
  address: z.string(),
  /** For people: what carries the packets. */
  port: z.string(),
  /** Where the NIC runs: on the program's event loop, or in a thread of its own. */
  engine: z.enum(['inline', 'worker']),
  /** ISO 8601, of this document and of the first window in it. */
  time: z.string(),
  windowStart: z.string(),
  /** Seconds of one window, and that this document covers. */
  windowSeconds: number,
  coveredSeconds: number,
  uptimeSeconds: number,
  /** One row a group and stage. */
  groups: z.array(
    summarySchema.extend({ conn: z.string(), op: z.string(), status: z.string(), stage: nameOf(STAGES) }),
  ),
  /** Connections that are open: what they added up in the time covered, and in all. */
  qps: z.array(
    z.object({
      conn: z.string(),
      qpn: number,
      remote: z.object({ address: z.string(), qpn: number }).nullable(),
      /** Seconds of the time covered in which the connection existed. */
      observedSeconds: number,
      covered: totalsSchema,
      total: totalsSchema,
    }),
  ),
  /** Lateness of the program's event loop; `stalledShare` is the part of the time covered that it stood still. */
  loopDelay: summarySchema.extend({ stalledShare: number, typicalStallNs: number }),
  device: z.object({ counters: z.record(z.string(), number) }),
  bounds: z.object({
    groups: number,
    overflowedSamples: number,
    windowsDroppedEarly: number,
    dumps: number,
    dumpsSuppressed: number,
  }),
});

export type EstatsSnapshot = z.infer<typeof snapshotSchema>;
export type GroupRow = EstatsSnapshot['groups'][number];
export type QpRow = EstatsSnapshot['qps'][number];

/** Throws ZodError for anything else. */
export function parseSnapshot(json: unknown): EstatsSnapshot {
  return snapshotSchema.parse(json);
}

/** Who is speaking. */
export interface EndpointIdentity {
  readonly pid: number;
  readonly address: string;
  readonly port: string;
  readonly engine: 'inline' | 'worker';
}

/** The windows of the last `minutes` minutes, and the open one. */
export function recentWindows(estats: Estats, minutes: number): TelemetryWindow[] {
  const current = estats.currentWindow();
  return [...estats.history.since(current.endNs - minutes * 60e9), current];
}

/** Covers the last `minutes` minutes, as far as they are remembered, and the open window. */
export function snapshotOf(estats: Estats, identity: EndpointIdentity, minutes: number): EstatsSnapshot {
  const windows = recentWindows(estats, minutes);
  const { startNs, endNs, groups, connections, loopDelay } = mergeWindows(windows);
  const coveredNs = endNs - startNs;
  return {
    version: 1,
    ...identity,
    time: isoTime(estats, endNs),
    windowStart: isoTime(estats, startNs),
    windowSeconds: estats.windowNs / 1e9,
    coveredSeconds: coveredNs / 1e9,
    uptimeSeconds: (endNs - estats.startedNs) / 1e9,
    groups: groups.flatMap(rowsOf),
    qps: [...estats.connections].map((connection) => ({
      conn: connection.name,
      qpn: connection.qpn,
      remote: connection.remote ?? null,
      observedSeconds: Math.min(coveredNs, endNs - connection.createdNs) / 1e9,
      covered: connections.get(connection.name)!,
      total: connection.totals(endNs),
    })),
    loopDelay: {
      ...loopDelay.summary(),
      stalledShare: coveredNs === 0 ? 0 : Math.min(1, loopDelay.sumNs / coveredNs),
      typicalStallNs: loopDelay.weightedMeanNs,
    },
    device: { counters: estats.counters() },
    bounds: {
      groups: estats.groups.size,
      overflowedSamples: estats.groups.overflowed,
      windowsDroppedEarly: estats.history.droppedEarly,
      dumps: estats.dumpLog.dumps.length,
      dumpsSuppressed: estats.dumpLog.suppressed,
    },
  };
}

function rowsOf({ conn, op, status, stages }: MergedGroup): GroupRow[] {
  return STAGES.map((stage, i) => ({ conn, op, status, stage, ...stages[i].summary() })).filter(
    ({ count }) => count > 0,
  );
}

function isoTime(estats: Estats, ns: number): string {
  return new Date(estats.epochMs + ns / 1e6).toISOString();
}
