/**
 * The telemetry of an endpoint as one JSON document: what `GET /estats.json` answers and the commands read. Times are nanoseconds unless
 * their name says otherwise.
 */

import { z } from 'zod';
import { QP_COUNTER_NAMES, WAIT_CAUSES } from '../ring/telemetry-page.js';
import { type AllowedRate, UNLIMITED_RATE } from './allowed-rate.js';
import type { Estats } from './estats.js';
import { Histogram } from './histogram.js';
import { type OpLatency, opLatency, opLatencySchema, summarySchema } from './op-latency.js';
import { STAGE_T6_T1, STAGES } from './stages.js';
import type { TelemetryWindow } from './window-history.js';
import { type MergedGroup, mergeWindows } from './window-merge.js';

const number = z.number();

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

/** Parses the document of an endpoint. */
export const endpointSchema = z.object({
  kind: z.literal('endpoint'),
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
  /** Posted to polled of all successful work by operation, all connections together. */
  latency: z.array(opLatencySchema),
  /** Connections that are open: what they added up in the time covered, and in all. */
  qps: z.array(
    z.object({
      conn: z.string(),
      qpn: number,
      remote: z.object({ address: z.string(), qpn: number }).nullable(),
      /** Seconds of the time covered in which the connection existed. */
      observedSeconds: number,
      /** What rate control allows now, in bits/s of the link, and what recovery heads for; null: not limited. */
      rateBps: number.nullable(),
      targetRateBps: number.nullable(),
      /** DCQCN's estimate of congestion, 0..1; null for other schemes. */
      alpha: number.nullable(),
      covered: totalsSchema,
      total: totalsSchema,
    }),
  ),
  /** Lateness of the program's event loop; `stalledShare` is the part of the time covered that it stood still. */
  loopDelay: summarySchema.extend({ stalledShare: number, typicalStallNs: number }),
  device: z.object({ counters: z.record(z.string(), number) }),
  /** The dumps that are kept, oldest first, without what is in them: `GET /dumps.json` has that. */
  dumps: z.array(
    z.object({
      time: z.string(),
      reason: z.enum(['slow', 'error', 'asked']),
      conn: z.string(),
      op: z.string().optional(),
      status: z.string().optional(),
      /** Posted to polled. */
      wholeNs: number.optional(),
    }),
  ),
  bounds: z.object({
    groups: number,
    overflowedSamples: number,
    windowsDroppedEarly: number,
    dumps: number,
    dumpsSuppressed: number,
  }),
});

/** What an endpoint answers. */
export type EstatsSnapshot = z.infer<typeof endpointSchema>;
/** Latency of one group and stage. */
export type GroupRow = EstatsSnapshot['groups'][number];
/** One queue pair. */
export type QpRow = EstatsSnapshot['qps'][number];

/** Who is speaking. */
export interface EndpointIdentity {
  /** Process id. */
  readonly pid: number;
  /** The endpoint's IP address. */
  readonly address: string;
  /** For people: what carries the packets. */
  readonly port: string;
  /** Where the NIC runs. */
  readonly engine: 'inline' | 'worker';
}

/** The windows of the last `minutes` minutes, and the open one. */
export function recentWindows(estats: Estats, minutes: number): TelemetryWindow[] {
  const current = estats.currentWindow();
  return [...estats.history.since(current.endNs - minutes * 60e9), current];
}

/**
 * Covers the last `minutes` minutes, as far as they are remembered, and the open window. `rates` are by number of the queue pair, as
 * `estats.allowedRates()` asks the NIC for them; what is not there counts as not limited.
 */
export function snapshotOf(
  estats: Estats,
  identity: EndpointIdentity,
  minutes: number,
  rates: ReadonlyMap<number, AllowedRate> = new Map(),
): EstatsSnapshot {
  const windows = recentWindows(estats, minutes);
  const { startNs, endNs, groups, connections, loopDelay } = mergeWindows(windows);
  const coveredNs = endNs - startNs;
  return {
    kind: 'endpoint',
    version: 1,
    ...identity,
    time: isoTime(estats, endNs),
    windowStart: isoTime(estats, startNs),
    windowSeconds: estats.windowNs / 1e9,
    coveredSeconds: coveredNs / 1e9,
    uptimeSeconds: (endNs - estats.startedNs) / 1e9,
    groups: groups.flatMap(rowsOf),
    latency: latencyByOp(groups),
    qps: [...estats.connections].map((connection) => ({
      conn: connection.name,
      qpn: connection.qpn,
      remote: connection.remote ?? null,
      observedSeconds: Math.min(coveredNs, endNs - connection.createdNs) / 1e9,
      ...(rates.get(connection.qpn) ?? UNLIMITED_RATE),
      covered: connections.get(connection.name)!,
      total: connection.totals(endNs),
    })),
    loopDelay: {
      ...loopDelay.summary(),
      stalledShare: coveredNs === 0 ? 0 : Math.min(1, loopDelay.sumNs / coveredNs),
      typicalStallNs: loopDelay.weightedMeanNs,
    },
    device: { counters: estats.counters() },
    dumps: estats.dumpLog.dumps.map(({ time, reason, conn, op, status, stagesNs }) => ({
      time,
      reason,
      conn,
      ...(op !== undefined && { op }),
      ...(status !== undefined && { status }),
      ...(stagesNs?.t6_t1 !== undefined && { wholeNs: stagesNs.t6_t1 }),
    })),
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

function latencyByOp(groups: readonly MergedGroup[]): OpLatency[] {
  const byOp = new Map<string, Histogram>();
  for (const { op, status, stages } of groups) {
    if (status !== 'SUCCESS') continue;
    const histogram = byOp.get(op) ?? new Histogram();
    histogram.add(stages[STAGE_T6_T1].toSparse());
    byOp.set(op, histogram);
  }
  return [...byOp].map(([op, histogram]) => opLatency(op, histogram));
}

function isoTime(estats: Estats, ns: number): string {
  return new Date(estats.epochMs + ns / 1e6).toISOString();
}
