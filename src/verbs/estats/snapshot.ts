import type { AssociationCounts } from '../../memory/ring/protection.js';
import { UNLIMITED_RATE } from './allowed-rate.js';
import type { ConnectionProtection } from './connection-telemetry.js';
import type { EstatsSnapshot, GroupRow, QpRow } from './endpoint-document.js';
import type { Estats, NicFacts } from './estats.js';
import { Histogram } from './histogram.js';
import { type OpLatency, opLatency } from './op-latency.js';
import { STAGE_T6_T1, STAGES } from './stages.js';
import type { TelemetryWindow } from './window-history.js';
import { type MergedGroup, mergeWindows } from './window-merge.js';

export interface EndpointIdentity {
  readonly pid: number;
  readonly address: string;
  readonly port: string;
  readonly engine: 'inline' | 'worker';
}

export function recentWindows(estats: Estats, minutes: number): TelemetryWindow[] {
  const current = estats.currentWindow();
  return [...estats.history.since(current.endNs - minutes * 60e9), current];
}

export function snapshotOf(
  estats: Estats,
  identity: EndpointIdentity,
  minutes: number,
  facts: ReadonlyMap<number, NicFacts> = new Map(),
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
      ...(connection.protection !== undefined && {
        protection: protectionRow(connection.protection, facts.get(connection.qpn)?.keys),
      }),
      ...(connection.copies !== undefined && { copies: { ...connection.copies } }),
      observedSeconds: Math.min(coveredNs, endNs - connection.createdNs) / 1e9,
      ...(facts.get(connection.qpn)?.rate ?? UNLIMITED_RATE),
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

const NO_COUNTS: AssociationCounts = { sealed: 0, opened: 0, replayed: 0, forged: 0, rekeys: 0 };

function protectionRow(
  { peer, cipher, sendSpi, receiveSpi }: ConnectionProtection,
  counts: AssociationCounts = NO_COUNTS,
): NonNullable<QpRow['protection']> {
  return { peer, cipher, sendSpi, receiveSpi, ...counts };
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
