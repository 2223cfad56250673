/** Documents as watched programs answer them, checked against their schemas. */

import { COUNTER_NAMES, type CounterName } from '../../../src/memory/ring/counters.js';
import { QP_COUNTER_NAMES, type QpCounterName } from '../../../src/memory/ring/telemetry-page.js';
import type { DiskDocument, DiskOp } from '../../../src/verbs/estats/disk-document.js';
import { DISK_OPS } from '../../../src/verbs/estats/disk-document.js';
import type { EstatsSnapshot } from '../../../src/verbs/estats/endpoint-document.js';
import { Estats } from '../../../src/verbs/estats/estats.js';
import { snapshotOf } from '../../../src/verbs/estats/snapshot.js';
import type { ClusterDocument } from '../../command/src/programs/cluster-document.js';
import type { SwitchDocument } from '../../command/src/programs/switch-document.js';
import { parseWatched } from '../../command/src/programs/watched.js';

const NO_TOTALS = {
  waitsNs: { window: 0, readLimit: 0, fence: 0, rnr: 0, pacing: 0 },
  activeNs: 0,
  timeoutsNs: 0,
  stalledUnsentNs: 0,
  stalledUnheardNs: 0,
};

export interface EndpointFacts {
  readonly pid?: number;
  readonly uptimeSeconds?: number;
  readonly counters?: Partial<Record<CounterName, number>>;
  /** Connections by name. */
  readonly qps?: Readonly<Record<string, Partial<Record<QpCounterName, number>>>>;
  readonly rest?: Partial<EstatsSnapshot>;
}

export function endpointDocument({ pid = 7, uptimeSeconds = 1, counters, qps = {}, rest }: EndpointFacts) {
  const estats = new Estats({ nowNs: () => 0, epochMs: 0, counters: new Float64Array(COUNTER_NAMES.length) });
  const snapshot = snapshotOf(estats, { pid, address: '192.0.2.1', port: 'test', engine: 'inline' }, 1);
  const document = {
    ...snapshot,
    uptimeSeconds,
    device: { counters: { ...snapshot.device.counters, ...counters } },
    qps: Object.entries(qps).map(([conn, moved], i) => {
      const totals = {
        ...NO_TOTALS,
        counters: { ...Object.fromEntries(QP_COUNTER_NAMES.map((name) => [name, 0])), ...moved },
      };
      const rate = { rateBps: null, targetRateBps: null, alpha: null };
      return { conn, qpn: i, remote: null, observedSeconds: 1, ...rate, covered: totals, total: totals };
    }),
    ...rest,
  };
  return parseWatched(document) as EstatsSnapshot;
}

type Port = SwitchDocument['ports'][number];

export function switchDocument(uptimeSeconds: number, ports: Readonly<Record<string, Partial<Port>>>): SwitchDocument {
  return parseWatched({
    kind: 'switch',
    version: 1,
    pid: 8,
    address: '127.0.0.1',
    time: new Date(0).toISOString(),
    uptimeSeconds,
    ports: Object.entries(ports).map(([name, facts]) => ({
      name,
      local: '127.0.0.1:5000',
      rateBps: null,
      counters: {},
      queueBytes: 0,
      queueBytesMax: 0,
      pausedPriorities: [],
      stormPriorities: [],
      ...facts,
    })),
    rules: [],
  }) as SwitchDocument;
}

export function diskDocument(
  uptimeSeconds: number,
  ops: Partial<Record<DiskOp, Partial<DiskDocument['ops'][number]>>>,
  rest: Partial<DiskDocument> = {},
): DiskDocument {
  return parseWatched({
    kind: 'disk',
    version: 1,
    pid: 9,
    address: '192.0.2.9',
    time: new Date(0).toISOString(),
    uptimeSeconds,
    role: 'gateway',
    store: 'memory',
    sizeBytes: 1 << 20,
    ops: DISK_OPS.map((op) => ({ op, requests: 0, bytes: 0, errors: 0, ...ops[op] })),
    latency: [],
    nbdClients: 0,
    connections: { rdma: 1, tcp: 0 },
    crcMismatches: 0,
    wrongDisks: 0,
    identity: { uuid: '01234567-89ab-cdef-0123-456789abcdef', name: 'disk', generation: 1 },
    file: null,
    path: {
      state: 'RDMA',
      failovers: 0,
      moves: 0,
      resentRequests: 0,
      serverRestarts: 0,
      outages: 0,
      outage: null,
    },
    ...rest,
  }) as DiskDocument;
}

type ClusterFacts = NonNullable<ClusterDocument['status']>;

/** A cluster of three nodes that is well; `nodes` says what is otherwise, by number. */
export function clusterDocument(
  uptimeSeconds: number,
  {
    nodes = {},
    extents,
    counters,
    ...status
  }: Partial<Pick<ClusterFacts, 'streams' | 'managers'>> & {
    readonly nodes?: Readonly<Record<number, Partial<ClusterFacts['nodes'][number]>>>;
    readonly extents?: Partial<ClusterFacts['extents']>;
    readonly counters?: Partial<ClusterFacts['counters']>;
  } = {},
  rest: Partial<ClusterDocument> = {},
): ClusterDocument {
  const address = '192.0.2.5:18528';
  const numbers = [...new Set([1, 2, 3, ...Object.keys(nodes).map(Number)])];
  return parseWatched({
    kind: 'cluster',
    version: 1,
    pid: 10,
    address,
    time: new Date(0).toISOString(),
    uptimeSeconds,
    cluster: '0123456789abcdef0123456789abcdef',
    leader: address,
    trouble: null,
    status: {
      managers: [{ address, leads: true, since: new Date(0).toISOString() }],
      nodes: numbers.map((node) => ({
        node,
        address: `192.0.2.6:${node}`,
        domain: `node ${node}`,
        state: 'up',
        silentMs: 200,
        replicas: 0,
        fragments: 0,
        usedBytes: 0,
        freeBytes: 1e9,
        damaged: 0,
        repaired: 0,
        readOnly: null,
        ...nodes[node],
      })),
      streams: [],
      extents: { open: 0, sealed: 0, coded: 0, underReplicated: 0, unavailable: 0, copying: 0, coding: 0, ...extents },
      counters: { seals: 0, copies: 0, codings: 0, rebuilds: 0, deleted: 0, refusedDisks: 0, ...counters },
      ...status,
    },
    ...rest,
  }) as ClusterDocument;
}
