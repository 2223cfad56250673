import { codedPlace, isDecodable } from './coding/coded-place.js';
import { erasureCode } from './coding/erasure-code.js';
import type { LiveNodes } from './live-nodes.js';
import type { ManagerState } from './manager-state.js';
import type { ClusterStatus, ReplicaReport } from './messages.js';
import { type ExtentRecord, ownerPlace, REPLICAS } from './metadata-schema.js';

export async function statusOf(manager: ManagerState, cluster: string): Promise<ClusterStatus> {
  const { schema, live, parts } = manager;
  const extents = await schema.extents();
  const records = extents.map(({ value }) => value);
  const known = new Map(extents.map(({ extent, value }) => [extent, value]));
  const owners = new Map((await parts.metadata.list('owner/')).map(({ key, value }) => [key, value]));
  const noted = new Map((await schema.nodes()).map(({ node, value }) => [node, value]));
  const codes = new Set([parts.code, ...records.map(({ coded }) => coded?.code)]);
  codes.delete(undefined);
  const count = (is: (record: ExtentRecord) => boolean) => records.filter(is).length;
  return {
    cluster,
    metadata: manager.metadataCheck.state,
    managers: await parts.managers(),
    nodes: [...live.all()]
      .sort((a, b) => a.node - b.node)
      .map(({ node, address, domain, report }) => ({
        node,
        address,
        domain,
        state: !live.isUp(node) ? 'down' : report?.readOnly === undefined ? 'up' : 'read-only',
        silentMs: Math.round(live.silentMs(node)),
        replicas: report?.replicas.length ?? 0,
        fragments: report?.fragments.length ?? 0,
        usedBytes: report?.usedBytes ?? 0,
        freeBytes: report?.freeBytes ?? 0,
        damaged: report?.damaged ?? 0,
        repaired: report?.repaired ?? 0,
        ...(report?.readOnly !== undefined && { readOnly: report.readOnly }),
        ...(report?.journal !== undefined && { journal: report.journal }),
        ...unverifiedOf(report?.replicas ?? []),
        ...(noted.get(node)?.refused !== undefined && { refused: noted.get(node)!.refused! }),
        ...(noted.get(node)?.copy !== undefined && { copy: noted.get(node)!.copy! }),
      })),
    streams: (await schema.streams()).map(({ stream, value }) => {
      const owner = owners.get(`owner/${stream}`);
      const own = value.extents.flatMap((extent) => known.get(extent) ?? []);
      return {
        stream,
        extents: value.extents.length,
        coded: own.filter(({ coded }) => coded !== undefined).length,
        sealedBytes: own.reduce((sum, { sealed }) => sum + (sealed ?? 0), 0),
        ...(owner !== undefined && ownerPlace(owner, value)),
      };
    }),
    nodesNeeded: Math.max(REPLICAS, ...[...codes].map((code) => erasureCode(code!).total)),
    extents: {
      open: count(({ sealed }) => sealed === undefined),
      sealed: count(({ sealed }) => sealed !== undefined),
      coded: count(({ coded }) => coded !== undefined),
      underReplicated: count((record) => !isWhole(record, live)),
      unavailable: count((record) => !isAvailable(record, live)),
      copying: manager.copying,
      coding: manager.coding,
    },
    waiting: [...manager.waiting].map(([extent, { reason }]) => ({ extent, reason })),
    counters: { ...manager.counters },
  };
}

function unverifiedOf(replicas: readonly ReplicaReport[]): { unverified?: number } {
  const unverified = replicas.filter(({ isStopped }) => isStopped === true).length;
  return unverified === 0 ? {} : { unverified };
}

function isWhole({ replicas, coded }: ExtentRecord, live: LiveNodes): boolean {
  if (coded !== undefined) return codedPlace(coded, live).fragments.length === coded.fragments.length;
  return replicas.filter((node) => live.isUp(node)).length >= REPLICAS;
}

function isAvailable({ replicas, coded }: ExtentRecord, live: LiveNodes): boolean {
  return (
    replicas.some((node) => live.isUp(node)) || (coded !== undefined && isDecodable(coded, (node) => live.isUp(node)))
  );
}
