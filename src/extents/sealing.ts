/**
 * How an extent is sealed: the manager fences all replicas that it can reach with a new epoch, takes the smallest of their lengths, and writes that down once, for
 * ever. What is on all replicas is in every one of them, so no acknowledged record is cut off.
 */

import { RpcError } from '../rpc/rpc-error.js';
import type { NodePlace } from './messages.js';
import type { ReplicaLength } from './replica.js';
import type { StreamManager } from './stream-manager.js';

/** What the replicas said when an extent was to be sealed. */
export interface FencedReplica extends ReplicaLength {
  /** Which one. */
  readonly node: number;
}

/**
 * The length to seal at. Replicas that are shorter than what the owner knows to be on all of them have lost data, and do not count; neither do those that were
 * started anew, as long as another one answers: memory knows what a lying disk has forgotten. Undefined: there is nobody to ask.
 */
export function sealedLength(replicas: readonly FencedReplica[], acked: number): number | undefined {
  const whole = replicas.filter(({ length }) => length >= acked);
  const known = whole.filter(({ isRecovered }) => !isRecovered);
  const asked = known.length > 0 ? known : whole;
  return asked.length === 0 ? undefined : Math.min(...asked.map(({ length }) => length));
}

/** Seals an extent, unless it is; one call for an extent at a time. `acked`: bytes known to be on all replicas. Throws UNREACHABLE if none of them answers. */
export async function sealExtent(manager: StreamManager, extent: number, acked: number): Promise<void> {
  const { parts, catalogue, live, counters } = manager;
  const { nodes, timing } = parts;
  for (;;) {
    const { key, version, value } = await catalogue.extent(extent);
    if (value.sealed !== undefined) return;
    const epoch = value.epoch + 1;
    if (!(await catalogue.commit([{ key, version, value: { ...value, epoch } }]))) continue;
    const places = live.places(value.replicas);
    const fence = async (place: NodePlace): Promise<FencedReplica | undefined> => {
      const answer = await nodes.call(place, 'fence', { extent, epoch }, timing.callMs).catch(() => undefined);
      return answer && { ...answer, node: place.node };
    };
    const fenced = (await Promise.all(places.map(fence))).filter((replica) => replica !== undefined);
    const sealed = manager.chooseLength(fenced, acked);
    if (sealed === undefined) throw new RpcError('UNREACHABLE', `no replica of extent ${extent} answers`);
    const whole = fenced.filter(({ length }) => length >= sealed).map(({ node }) => node);
    const fencedRecord = await catalogue.extent(extent);
    if (fencedRecord.value.epoch !== epoch || fencedRecord.value.sealed !== undefined) continue;
    const decided = { epoch, sealed, replicas: whole };
    if (!(await catalogue.commit([{ key, version: fencedRecord.version, value: decided }]))) continue;
    counters.seals++;
    const seal = { extent, epoch, length: sealed };
    // Who does not hear it now is told after its next report.
    await Promise.all(
      live.places(whole).map((place) => nodes.call(place, 'seal', seal, timing.callMs).catch(() => {})),
    );
    return;
  }
}
