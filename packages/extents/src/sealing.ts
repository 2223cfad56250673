/**
 * The manager fences all reachable replicas with a new epoch and records the smallest of their lengths once. Every
 * acknowledged record is on all replicas, so none is cut off.
 */

import { RpcError } from '@rocev2/rpc';
import type { ManagerState } from './manager-state.js';
import type { NodePlace } from './messages.js';
import type { ReplicaLength } from './replica.js';

export interface FencedReplica extends ReplicaLength {
  readonly node: number;
}

/** A manager and its rule of sealing. */
export interface SealingManager extends ManagerState {
  chooseLength(replicas: readonly FencedReplica[], acked: number): number | undefined;
}

/**
 * The length to seal at; undefined without candidates. Replicas shorter than what the owner, or a record of any
 * replica, shows as committed have lost data and do not count. Of the rest only those with the fewest restarts count:
 * memory is more reliable than a disk that lies, and an old copy of a disk looks like a restart.
 */
export function sealedLength(replicas: readonly FencedReplica[], acked: number): number | undefined {
  const onAll = Math.max(acked, ...replicas.map(({ committed }) => committed));
  const whole = replicas.filter(({ length }) => length >= onAll);
  if (whole.length === 0) return undefined;
  const fewest = Math.min(...whole.map(({ restarts }) => restarts));
  return Math.min(...whole.filter(({ restarts }) => restarts === fewest).map(({ length }) => length));
}

/** `acked`: bytes known to be on all replicas. */
export async function sealExtent(manager: SealingManager, extent: number, acked: number): Promise<void> {
  const { parts, schema, live, counters } = manager;
  const { nodes, timing } = parts;
  for (;;) {
    const { key, version, value } = await schema.extent(extent);
    if (value.sealed !== undefined) return;
    const epoch = value.epoch + 1;
    if (!(await schema.commit([{ key, version, value: { ...value, epoch } }]))) continue;
    const addresses = live.addresses(value.replicas);
    const fence = async (place: NodePlace): Promise<FencedReplica | undefined> => {
      const answer = await nodes.call(place, 'fence', { extent, epoch }, timing.callMs).catch(() => undefined);
      return answer && { ...answer, node: place.node };
    };
    const fenced = (await Promise.all(addresses.map(fence))).filter((replica) => replica !== undefined);
    const sealed = manager.chooseLength(fenced, acked);
    if (sealed === undefined) throw new RpcError('UNREACHABLE', `no replica of extent ${extent} answers`);
    const whole = fenced.filter(({ length }) => length >= sealed).map(({ node }) => node);
    const fencedRecord = await schema.extent(extent);
    if (fencedRecord.value.epoch !== epoch || fencedRecord.value.sealed !== undefined) continue;
    const decided = { epoch, sealed, replicas: whole };
    if (!(await schema.commit([{ key, version: fencedRecord.version, value: decided }]))) continue;
    counters.seals++;
    const seal = { extent, epoch, length: sealed };
    await Promise.all(
      live.addresses(whole).map((place) => nodes.call(place, 'seal', seal, timing.callMs).catch(() => {})),
    );
    return;
  }
}
