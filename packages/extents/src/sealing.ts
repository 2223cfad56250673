/**
 * The manager fences all reachable replicas with a new epoch and records the length of the extent once. Every
 * acknowledged record is on all replicas that have lost nothing, so none of it is cut off.
 */

import { RpcError } from '@rocev2/rpc';
import type { ManagerState } from './manager-state.js';
import { codeOf, type NodePlace } from './messages.js';
import type { ExtentRecord } from './metadata-schema.js';
import type { ReplicaLength } from './replica.js';

export interface FencedReplica extends ReplicaLength {
  readonly node: number;
}

/** What a seal is decided on. */
export interface SealCandidates {
  readonly replicas: readonly FencedReplica[];
  /** Bytes that are acknowledged, as the owner says; undefined: the owner is not there to say it. */
  readonly acked?: number | undefined;
  /** Nodes that did not answer. One that answers that it has no replica is not among them. */
  readonly silent: readonly number[];
  /** The operator has decided that the replicas that answer are enough. */
  readonly isAccepted?: boolean;
}

export type SealDecision =
  | { readonly length: number; readonly isFromDisks?: boolean }
  | { readonly length: undefined; readonly reason: string };

/** A manager and its rule of sealing. */
export interface SealingManager extends ManagerState {
  chooseLength(candidates: SealCandidates): SealDecision;
}

/**
 * The length to seal at. Replicas shorter than the length that the owner, or a record of any replica, shows as
 * committed have lost data and do not count. Of the rest:
 *
 * - Those of nodes that have run since the extent was opened have all acknowledged records: the smallest length of
 *   these is right.
 * - Those that were read from disks after a crash may be older copies: only the longest of all of them is right. If the
 *   owner does not say what was acknowledged, and a node is silent or one replica is left, an acknowledged record may
 *   be missing, and the operator decides.
 */
export function sealedLength({ replicas, acked, silent, isAccepted = false }: SealCandidates): SealDecision {
  const decided = replicas.find(({ sealed }) => sealed !== undefined)?.sealed;
  if (decided !== undefined) return { length: decided };
  const onAll = Math.max(acked ?? 0, ...replicas.map(({ committed }) => committed));
  const whole = replicas.filter(({ length }) => length >= onAll);
  if (whole.length === 0) return { length: undefined, reason: nobodyHas(onAll, silent) };
  const certain = whole.filter(({ restarts }) => restarts === 0);
  if (certain.length > 0) return { length: Math.min(...certain.map(({ length }) => length)) };
  const length = Math.max(...whole.map((replica) => replica.length));
  if (acked !== undefined) return { length };
  if (isAccepted) return { length, isFromDisks: true };
  const answered = replicas.map(({ node }) => node);
  if (silent.length > 0)
    return {
      length: undefined,
      reason: `${nodesText(answered)} crashed while it was open, and may lack records that ${nodesText(silent)} has; start ${nodesText(silent)}, or do without: rocev2 extents accept`,
    };
  if (answered.length < 2)
    return {
      length: undefined,
      reason: `only ${nodesText(answered)} has a replica, and crashed while it was open: it may lack acknowledged records; to take it as it is: rocev2 extents accept`,
    };
  return { length, isFromDisks: true };
}

function nobodyHas(bytes: number, silent: readonly number[]): string {
  const from = silent.length === 0 ? 'no node has' : `${nodesText(silent)} does not answer, and no other node has`;
  return bytes === 0 ? `${from} a replica` : `${from} the ${bytes} bytes that were acknowledged`;
}

function nodesText(nodes: readonly number[]): string {
  return `${nodes.length === 1 ? 'node' : 'nodes'} ${nodes.join(', ')}`;
}

/** `acked`: bytes that are acknowledged, as the owner says. Throws UNREACHABLE while the length is not certain. */
export async function sealExtent(
  manager: SealingManager,
  extent: number,
  { acked, isAccepted = false }: Pick<SealCandidates, 'acked' | 'isAccepted'>,
): Promise<void> {
  const { schema, live, counters, waiting } = manager;
  for (;;) {
    const { key, version, value } = await schema.extent(extent);
    if (value.sealed !== undefined) {
      waiting.delete(extent);
      return;
    }
    // This manager has fenced with the epoch, so nothing more is appended to it.
    const isFenced = waiting.get(extent)?.epoch === value.epoch;
    const epoch = isFenced ? value.epoch : value.epoch + 1;
    if (!isFenced && !(await schema.commit([{ key, version, value: { ...value, epoch } }]))) continue;
    const { fenced, silent } = await fence(manager, extent, { ...value, epoch });
    const decision = manager.chooseLength({ replicas: fenced, acked, silent, isAccepted });
    const { length: sealed } = decision;
    if (sealed === undefined) throw waits(manager, extent, epoch, decision.reason);
    const whole = await complete(manager, extent, { epoch, length: sealed, fenced });
    if (decision.isFromDisks === true && !isAccepted && whole.length < 2)
      throw waits(manager, extent, epoch, `no second node can take the records that ${nodesText(whole)} alone has`);
    const fencedRecord = await schema.extent(extent);
    if (fencedRecord.value.epoch !== epoch || fencedRecord.value.sealed !== undefined) continue;
    const decided = { ...fencedRecord.value, sealed, replicas: whole };
    if (!(await schema.commit([{ key, version: fencedRecord.version, value: decided }]))) continue;
    counters.seals++;
    waiting.delete(extent);
    const { nodes, timing } = manager.parts;
    const seal = { extent, epoch, length: sealed };
    await Promise.all(
      live.addresses(whole).map((place) => nodes.call(place, 'seal', seal, timing.callMs).catch(() => {})),
    );
    return;
  }
}

function waits({ waiting }: ManagerState, extent: number, epoch: number, reason: string): RpcError {
  waiting.set(extent, { epoch, reason });
  return new RpcError('UNREACHABLE', `extent ${extent} cannot be sealed: ${reason}`);
}

async function fence(
  { parts, live, schema }: ManagerState,
  extent: number,
  { replicas, epoch }: ExtentRecord,
): Promise<{ readonly fenced: readonly FencedReplica[]; readonly silent: readonly number[] }> {
  const { nodes, timing } = parts;
  const fenced: FencedReplica[] = [];
  const silent = new Set(replicas);
  const ask = async (place: NodePlace) => {
    try {
      const answer = await nodes.call(place, 'fence', { extent, epoch }, timing.callMs);
      fenced.push({ ...answer, node: place.node });
    } catch (error) {
      if (codeOf(error) !== 'MISSING') return;
    }
    silent.delete(place.node);
  };
  await Promise.all(live.addresses(replicas).map(ask));
  // The node was started with an older copy of its folder or journal: it has no replica that counts.
  for (const node of [...silent]) if ((await schema.node(node))?.value.refused !== undefined) silent.delete(node);
  return { fenced, silent: [...silent] };
}

/**
 * Brings shorter replicas to the length before it is recorded: otherwise the loss of one node could take records with
 * it that others had. Resolves to the nodes that have all of it.
 */
async function complete(
  { parts, live }: ManagerState,
  extent: number,
  {
    epoch,
    length,
    fenced,
  }: { readonly epoch: number; readonly length: number; readonly fenced: readonly FencedReplica[] },
): Promise<number[]> {
  const { nodes, timing } = parts;
  const whole = fenced.filter((replica) => replica.length >= length).map(({ node }) => node);
  const from = live.addresses(whole);
  const fill = async (place: NodePlace) => {
    const isWhole = await nodes.call(place, 'complete', { extent, epoch, length, from }, timing.copyMs).then(
      () => true,
      () => false,
    );
    if (isWhole) whole.push(place.node);
  };
  const short = fenced.filter((replica) => replica.length < length).map(({ node }) => node);
  await Promise.all(live.addresses(short).map(fill));
  return whole;
}
