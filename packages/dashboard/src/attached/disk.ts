import type { DiskDocument, DiskOp } from 'rocev2/internal/estats';
import type { DiskDetail } from '../messages/attached.js';
import { latencyRows } from './latency-rows.js';
import { counted, firstTrouble, type ProgramEvent, type ProgramKind } from './program-kind.js';
import { growth, moved, sum, type TimedChange } from './rates.js';

type Reading = TimedChange<DiskDocument>;

type Path = NonNullable<DiskDocument['path']>;

const PATH_TROUBLES: Partial<Readonly<Record<Path['state'], string>>> = {
  HOLD_DOWN: 'RDMA failed: over TCP',
  PROBE: 'over TCP; RDMA is being probed',
  RAMP: 'returns to RDMA',
};

export const DISK: ProgramKind<'disk'> = {
  sample: (reading) => {
    const ops = reading.now.ops.map(({ op, requests, bytes }) => {
      const earlier = before(reading, op);
      return {
        op,
        perSecond: growth(requests, earlier?.requests) / reading.seconds,
        bps: (8 * growth(bytes, earlier?.bytes)) / reading.seconds,
      };
    });
    const bpsOf = (name: DiskOp) => ops.find(({ op }) => op === name)?.bps ?? 0;
    const { now } = reading;
    return {
      inBps: bpsOf('write'),
      outBps: bpsOf('read'),
      ops,
      totals: {
        requests: sum(now.ops.map(({ requests }) => requests)),
        errors: errors(now),
        crcMismatches: now.crcMismatches,
        sessions: now.connections.rdma + now.connections.tcp,
        failovers: now.path?.failovers ?? 0,
        resentRequests: now.path?.resentRequests ?? 0,
      },
    };
  },

  detail: ({ role, store, sizeBytes, latency, nbdClients, connections, path }): DiskDetail => ({
    role,
    store,
    sizeBytes,
    latency: latencyRows(latency),
    nbdClients,
    connections,
    path: path?.state ?? null,
    outage: path?.outage?.reason ?? null,
  }),

  health: (change) => {
    const { path, file } = change.now;
    return firstTrouble([
      outageOf(change.now),
      (file?.scrub?.damagedBlocks ?? 0) > 0 && 'the disk has damaged blocks',
      (file?.scrub?.unreadableBytes ?? 0) > 0 && 'a part of the disk cannot be read',
      moved(change, errors) > 0 && 'requests fail',
      moved(change, crcMismatches) > 0 && 'data arrives damaged',
      (path !== null && PATH_TROUBLES[path.state]) ?? false,
    ]);
  },

  events: (change) => [
    ...outageEvents(change.now.path, change.before.path),
    ...counted('failure', 'client refused: it is for another disk', moved(change, refusedClients)),
    ...counted('failure', 'request failed', moved(change, errors)),
    ...counted('failure', 'data arrived damaged (CRC mismatch)', moved(change, crcMismatches)),
    ...pathEvents(change.now.path, change.before.path),
    ...connectionEvents(change.now, change.before),
  ],
};

function before({ before: { ops } }: Reading, name: DiskOp): DiskDocument['ops'][number] | undefined {
  return ops.find(({ op }) => op === name);
}

function crcMismatches(document: DiskDocument): number {
  return document.crcMismatches;
}

function errors({ ops }: DiskDocument): number {
  return sum(ops.map((op) => op.errors));
}

function outageOf({ path }: DiskDocument): string | false {
  if (path?.outage == null) return false;
  return path.outage.isWrongDisk ? 'the storage server has another disk' : 'the storage server cannot be reached';
}

function refusedClients({ role, wrongDisks }: DiskDocument): number {
  return role === 'server' ? wrongDisks : 0;
}

function outageEvents(now: Path | null, earlier: Path | null): ProgramEvent[] {
  if (now === null) return [];
  const begun = counted('failure', 'the storage server cannot be reached', growth(now.outages, earlier?.outages));
  const isOver = earlier?.outage != null && now.outage === null;
  return isOver ? [...begun, { kind: 'notice', text: 'the storage server is back' }] : begun;
}

function pathEvents(now: Path | null, earlier: Path | null): ProgramEvent[] {
  if (now === null) return [];
  const failovers = growth(now.failovers, earlier?.failovers);
  // A short outage may begin and end between two readings.
  const wasAway = earlier !== null && (earlier.state !== 'RDMA' || failovers > 0);
  return [
    ...counted('failure', 'failover to TCP', failovers),
    ...counted('loss', 'request sent again', growth(now.resentRequests, earlier?.resentRequests)),
    ...counted('notice', 'the storage server was restarted', growth(now.serverRestarts, earlier?.serverRestarts)),
    ...(wasAway && now.state === 'RDMA' ? [{ kind: 'notice', text: 'back on RDMA' } as const] : []),
  ];
}

function connectionEvents(now: DiskDocument, earlier: DiskDocument): ProgramEvent[] {
  const text = ({ connections: { rdma, tcp } }: DiskDocument) => `${rdma} over RDMA, ${tcp} over TCP`;
  return text(now) === text(earlier) ? [] : [{ kind: 'notice', text: `connections: ${text(now)}` }];
}
