/**
 * How an extent is sealed: the manager fences all replicas that it can reach with a new epoch, takes the smallest of their lengths, and writes that down once, for
 * ever. What is on all replicas is in every one of them, so no acknowledged record is cut off.
 */

import { RpcError } from '@rocev2/rpc';
import type { ManagerState } from './manager-state.js';
import type { NodePlace } from './messages.js';
import type { ReplicaLength } from './replica.js';

/** What the replicas said when an extent was to be sealed. */
export interface FencedReplica extends ReplicaLength {
  /** Which one. */
  readonly node: number;
}

/** A manager and its rule of sealing. */
export interface SealingManager extends ManagerState {
  chooseLength(replicas: readonly FencedReplica[], acked: number): number | undefined;
}

/**
 * The length to seal at. Replicas that are shorter than what the owner, or a record of any replica, knows to be on all of them have lost data, and do not count. Of the
 * others those count whose nodes have been started anew the least often since: memory knows what a lying disk has forgotten, and a disk that took part in the last append what an old copy
 * of another disk lacks, which looks like a restart before that. Undefined: there is nobody to ask.
 */
export function sealedLength(replicas: readonly FencedReplica[], acked: number): number | undefined {
  const onAll = Math.max(acked, ...replicas.map(({ committed }) => committed));
  const whole = replicas.filter(({ length }) => length >= onAll);
  if (whole.length === 0) return undefined;
  const fewest = Math.min(...whole.map(({ restarts }) => restarts));
  return Math.min(...whole.filter(({ restarts }) => restarts === fewest).map(({ length }) => length));
}

/** Seals an extent, unless it is; one call for an extent at a time. `acked`: bytes known to be on all replicas. Throws UNREACHABLE if none of them answers. */
export async function sealExtent(manager: SealingManager, extent: number, acked: number): Promise<void> {
  const { parts, schema, live, counters } = manager;
  const { nodes, timing } = parts;
  for (;;) {
    const { key, version, value } = await schema.extent(extent);
    if (value.sealed !== undefined) return;
    const epoch = value.epoch + 1;
    if (!(await schema.commit([{ key, version, value: { ...value, epoch } }]))) continue;
    const places = live.places(value.replicas);
    const fence = async (place: NodePlace): Promise<FencedReplica | undefined> => {
      const answer = await nodes.call(place, 'fence', { extent, epoch }, timing.callMs).catch(() => undefined);
      return answer && { ...answer, node: place.node };
    };
    const fenced = (await Promise.all(places.map(fence))).filter((replica) => replica !== undefined);
    const sealed = manager.chooseLength(fenced, acked);
    if (sealed === undefined) throw new RpcError('UNREACHABLE', `no replica of extent ${extent} answers`);
    const whole = fenced.filter(({ length }) => length >= sealed).map(({ node }) => node);
    const fencedRecord = await schema.extent(extent);
    if (fencedRecord.value.epoch !== epoch || fencedRecord.value.sealed !== undefined) continue;
    const decided = { epoch, sealed, replicas: whole };
    if (!(await schema.commit([{ key, version: fencedRecord.version, value: decided }]))) continue;
    counters.seals++;
    const seal = { extent, epoch, length: sealed };
    // Who does not hear it now is told after its next report.
    await Promise.all(
      live.places(whole).map((place) => nodes.call(place, 'seal', seal, timing.callMs).catch(() => {})),
    );
    return;
  }
}
