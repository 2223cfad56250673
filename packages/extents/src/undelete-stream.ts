/** Undoes the deletion of a stream: nodes keep the files of deleted extents for some time. */

import { RpcError } from '@rocev2/rpc';
import type { ManagerState } from './manager-state.js';
import type { NodePlace, UndeleteReport } from './messages.js';
import { addFound, addToStream, inventories, reserveNumbers } from './metadata-recovery.js';

/**
 * Takes the extents of a deleted stream out of quarantine on all nodes that answer, and makes the stream of them again.
 * Rejects with CONFLICT if there is such a stream, MISSING if no node has an extent of it.
 */
export async function undeleteStream(manager: ManagerState, stream: string): Promise<UndeleteReport> {
  const { schema, busy } = manager;
  if ((await schema.streams()).some((one) => one.stream === stream))
    throw new RpcError('CONFLICT', `there is a stream '${stream}' now; delete it first, if it is another one`);
  const extents = new Set<number>();
  const silent = await askNodes(manager, async (place, ms) => {
    const deleted = await manager.parts.nodes.call(place, 'deleted', { stream }, ms);
    for (const extent of deleted.extents) extents.add(extent);
  });
  // Snapshots and clones kept these.
  const kept = (await schema.extents()).filter(({ value }) => value.of?.stream === stream);
  if (extents.size + kept.length === 0)
    throw new RpcError('MISSING', `no node has a deleted extent of '${stream}'; they are kept for --keep-deleted`);
  // What nodes report is deleted again, unless it is in progress or in the metadata.
  const mine = [...extents].filter((extent) => !busy.has(extent));
  for (const extent of mine) busy.add(extent);
  try {
    await askNodes(manager, (place, ms) => manager.parts.nodes.call(place, 'undelete', { extents: mine }, ms));
    const { found } = await inventories(manager);
    const own = new Map([...found].filter(([extent]) => extents.has(extent)));
    const { added } = await addFound(manager, own);
    const again = [...(added.get(stream) ?? []), ...kept.map(({ extent, value }) => ({ extent, ...value.of! }))];
    await addToStream(
      manager,
      stream,
      again.sort((a, b) => a.extent - b.extent),
    );
    await reserveNumbers(manager, own);
    return { extents: again.map(({ extent }) => extent), silent };
  } finally {
    for (const extent of mine) busy.delete(extent);
  }
}

/** Resolves to the nodes that did not answer. */
async function askNodes(
  { live, parts }: ManagerState,
  ask: (place: NodePlace, timeoutMs: number) => Promise<unknown>,
): Promise<readonly number[]> {
  const silent: number[] = [];
  const one = ({ node, address }: NodePlace) =>
    ask({ node, address }, parts.timing.callMs).catch(() => void silent.push(node));
  await Promise.all([...live.all()].map(one));
  return silent.sort((a, b) => a - b);
}
