/**
 * Rebuilds the metadata from the content of the nodes, after its latest copy is lost. Each replica and fragment says
 * to which stream it belongs, so extents that the metadata does not know are added to their streams in order.
 */

import { erasureCode } from './coding/erasure-code.js';
import type { ManagerState } from './manager-state.js';
import type { NodeInventory, NodePlace, RecoveryReport } from './messages.js';
import { type CodedRecord, type ExtentRecord, extentKey, NOBODY, type StreamRecord } from './metadata-schema.js';

/** Epoch of an extent of which only fragments are left: it has been sealed. */
const SEALED_EPOCH = 2;

interface FoundExtent {
  readonly replicas: Array<NodeInventory['replicas'][number] & { readonly node: number }>;
  readonly fragments: Array<NodeInventory['fragments'][number] & { readonly node: number }>;
}

/** Changes only what nodes prove. Nothing that the metadata has is removed. */
export async function recoverMetadata(manager: ManagerState): Promise<RecoveryReport> {
  const { schema, busy } = manager;
  const { found, silent } = await inventories(manager);
  const { added, unknown } = await addFound(manager, new Map([...found].filter(([extent]) => !busy.has(extent))));
  for (const [stream, extents] of added) await addToStream(manager, stream, extents);
  await reserveNumbers(manager, found);
  // The marks of folders that it has are older than those of the nodes.
  for (const { key, version, value } of await schema.nodes()) {
    const { mark: _, refused: __, copy: ___, ...rest } = value;
    await schema.commit([{ key, version, value: rest }]);
  }
  await manager.metadataCheck.accept();
  const records = await schema.extents();
  return {
    certain: records.filter(({ value }) => value.sealed !== undefined && isThere(value)).map(({ extent }) => extent),
    open: records.filter(({ value }) => value.sealed === undefined).map(({ extent }) => extent),
    missing: records.filter(({ extent }) => !found.has(extent)).map(({ extent }) => extent),
    unknown,
    streams: [...added].map(([stream, extents]) => ({ stream, extents: extents.map(({ extent }) => extent) })),
    silent: silent.sort((a, b) => a - b),
  };

  function isThere({ replicas, coded }: ExtentRecord): boolean {
    return replicas.some((node) => !silent.includes(node)) || coded !== undefined;
  }
}

type Found = ReadonlyMap<number, FoundExtent>;
type AddedExtent = { readonly extent: number; readonly epoch: number };

/** What all nodes have, and which nodes did not answer. */
export async function inventories({
  parts,
  live,
}: ManagerState): Promise<{ readonly found: Found; readonly silent: number[] }> {
  const silent: number[] = [];
  const found = new Map<number, FoundExtent>();
  const take = async (place: NodePlace) => {
    const inventory = await parts.nodes.call(place, 'inventory', {}, parts.timing.callMs).catch(() => undefined);
    if (inventory === undefined) silent.push(place.node);
    else note(found, place.node, inventory);
  };
  await Promise.all([...live.all()].map(({ node, address }) => take({ node, address })));
  return { found, silent };
}

/** Writes records of extents. `added`: those that the metadata did not have, by stream, which are not yet in these. */
export async function addFound(
  { schema }: ManagerState,
  found: Found,
): Promise<{ readonly added: ReadonlyMap<string, readonly AddedExtent[]>; readonly unknown: readonly number[] }> {
  const known = new Map((await schema.extents()).map((record) => [record.extent, record]));
  const unknown: number[] = [];
  const added = new Map<string, AddedExtent[]>();
  for (const [extent, one] of [...found].sort(([a], [b]) => a - b)) {
    const old = known.get(extent);
    const of = old?.value.of ?? [...one.replicas, ...one.fragments].find((part) => part.of !== undefined)?.of;
    if (old === undefined && of === undefined) {
      unknown.push(extent);
      continue;
    }
    const value = { ...merged(old?.value, one), ...(of !== undefined && { of }) };
    await schema.commit([{ key: extentKey(extent), version: old?.version ?? 0, value }]);
    if (old === undefined) added.set(of!.stream, [...(added.get(of!.stream) ?? []), { extent, epoch: of!.epoch }]);
  }
  return { added, unknown };
}

export function reserveNumbers(manager: ManagerState, found: Found): Promise<void> {
  const extent = Math.max(0, ...found.keys());
  return manager.schema.reserve({ extent, node: maxNode(manager), making: maxMaking(found) });
}

function note(found: Map<number, FoundExtent>, node: number, { replicas, fragments }: NodeInventory): void {
  const at = (extent: number) => {
    const one = found.get(extent) ?? { replicas: [], fragments: [] };
    found.set(extent, one);
    return one;
  };
  for (const replica of replicas) at(replica.extent).replicas.push({ ...replica, node });
  for (const fragment of fragments) at(fragment.extent).fragments.push({ ...fragment, node });
}

/** A seal is decided once: one replica that is sealed, or one fragment, proves the length. */
function merged(old: ExtentRecord | undefined, { replicas, fragments }: FoundExtent): ExtentRecord {
  const sealed =
    old?.sealed ?? replicas.find((replica) => replica.sealed !== undefined)?.sealed ?? fragments[0]?.length;
  const epoch = Math.max(old?.epoch ?? 0, fragments.length > 0 ? SEALED_EPOCH : 0, ...replicas.map((one) => one.epoch));
  const whole = replicas.filter((replica) => sealed === undefined || replica.sealed === sealed).map(({ node }) => node);
  const nodes = [...new Set([...(old?.replicas ?? []), ...whole])];
  const coded = old?.coded ?? codedOf(fragments);
  return { epoch, ...(sealed !== undefined && { sealed }), replicas: nodes, ...(coded !== undefined && { coded }) };
}

function codedOf(fragments: FoundExtent['fragments']): CodedRecord | undefined {
  if (fragments.length === 0) return undefined;
  const { code } = fragments[0];
  const latest = (index: number) =>
    fragments.filter(({ fragment }) => fragment === index).sort((a, b) => b.making - a.making)[0];
  return {
    code,
    fragments: Array.from({ length: erasureCode(code).total }, (_, index) => {
      const { node, making } = latest(index) ?? { node: NOBODY, making: 0 };
      return { node, making };
    }),
  };
}

export async function addToStream(
  { schema }: ManagerState,
  stream: string,
  added: readonly AddedExtent[],
): Promise<void> {
  for (;;) {
    const old = await schema.stream(stream).catch(() => undefined);
    const extents = [...new Set([...(old?.value.extents ?? []), ...added.map(({ extent }) => extent)])];
    // Readers skip records of an owner that they have read: a later owner needs a later epoch.
    const epoch = Math.max(old?.value.epoch ?? 0, ...added.map((one) => one.epoch));
    const value: StreamRecord = { ...old?.value, epoch, extents };
    if (await schema.commit([{ key: `stream/${stream}`, version: old?.version ?? 0, value }])) return;
  }
}

function maxNode({ live }: ManagerState): number {
  return Math.max(0, ...[...live.all()].map(({ node }) => node));
}

function maxMaking(found: Found): number {
  return Math.max(0, ...[...found.values()].flatMap(({ fragments }) => fragments.map(({ making }) => making)));
}
