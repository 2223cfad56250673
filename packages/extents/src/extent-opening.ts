/**
 * Opens extents on nodes that take data. Their owner may append when all replicas have seen the state of the metadata
 * that has the extent.
 */

import { RpcError } from '@rocev2/rpc';
import type { ManagerState } from './manager-state.js';
import type { ExtentPlace, NodePlace } from './messages.js';
import { type ExtentOrigin, type ExtentRecord, extentKey, REPLICAS } from './metadata-schema.js';

export const OPEN_ATTEMPTS = 4;
/** Epoch of an extent until sealing begins. */
export const OPEN_EPOCH = 1;

/**
 * Shows all nodes the state of the metadata that has the extent, before its owner appends: an older copy of the
 * metadata is recognized by any of its replicas. False, and the nodes are avoided, if one of these does not have it.
 */
export async function isShown(
  { parts, history, live }: ManagerState,
  { replicas }: ExtentPlace,
  avoided: Set<number>,
): Promise<boolean> {
  const { nodes, timing } = parts;
  const { version } = history;
  const show = (place: NodePlace) => nodes.call(place, 'noteVersion', { version }, timing.callMs);
  const isReplica = ({ node }: NodePlace) => replicas.some((replica) => replica.node === node);
  const others = [...live.all()].filter((one) => live.isHeard(one.node) && !isReplica(one));
  for (const { node, address } of others) show({ node, address }).catch(() => {});
  const failed = await Promise.all(
    replicas.map((place) =>
      show(place).then(
        () => [],
        () => [place.node],
      ),
    ),
  );
  for (const node of failed.flat()) avoided.add(node);
  return failed.flat().length === 0;
}

/** Makes replicas on three nodes, none of the avoided ones, and adds the extent to the stream of its owner. */
export async function openExtent(
  { parts, schema, live, busy }: ManagerState,
  of: ExtentOrigin,
  avoided: Set<number>,
): Promise<ExtentPlace> {
  const { nodes, timing, extentBytes } = parts;
  const extent = await schema.newExtent();
  busy.add(extent);
  try {
    const replicas: NodePlace[] = [];
    for (let attempt = 0; attempt < OPEN_ATTEMPTS && replicas.length < REPLICAS; attempt++) {
      const taken = replicas.map(({ node }) => node);
      const chosen = live.choose(REPLICAS - replicas.length, { taken, avoided, bytes: 2 * extentBytes });
      if (chosen.length < REPLICAS - replicas.length) break;
      const create = async (place: NodePlace) => {
        try {
          await nodes.call(place, 'create', { extent, epoch: OPEN_EPOCH, of }, timing.callMs);
          replicas.push(place);
        } catch {
          avoided.add(place.node);
        }
      };
      await Promise.all(chosen.map(create));
    }
    if (replicas.length < REPLICAS) throw new RpcError('NO_SPACE', `fewer than ${REPLICAS} nodes can take an extent`);
    const value: ExtentRecord = { epoch: OPEN_EPOCH, replicas: replicas.map(({ node }) => node), of };
    const record = await schema.ownedStream(of.stream, of.epoch);
    const extents = [...record.value.extents, extent];
    const isThere = await schema.commit([
      { key: record.key, version: record.version, value: { ...record.value, extents } },
      { key: extentKey(extent), version: 0, value },
    ]);
    if (!isThere) throw new RpcError('BUSY', `the stream '${of.stream}' is changing`);
    return { extent, epoch: OPEN_EPOCH, replicas };
  } finally {
    busy.delete(extent);
  }
}
