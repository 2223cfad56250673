/**
 * A copy of a node's folder is started while the original is live or down, in another place or in that of the original.
 * Everything that was acknowledged is read when all nodes have returned.
 */

import { until } from '../../../test/support/virtual-time.js';
import type { ExtentRecord, NodeRecord } from '../src/metadata-schema.js';
import { Cluster, type Machine } from './cluster.js';
import { type History, optionsOf, REPAIR_MS, readInto, STREAM } from './time-travel.js';

export interface FolderCopy {
  /** Which node is copied. */
  readonly node: number;
  /** When it was copied. */
  readonly moment: number;
  /** Whether the original runs when the copy is started; otherwise it returns later. */
  readonly isLive: boolean;
  /** The journal is copied as well. */
  readonly hasJournal: boolean;
  /** The moment to which the folders of all other nodes go back. */
  readonly others: number;
}

/**
 * All copies of all folders. Other folders go back only if the original has everything that was acknowledged, and the
 * copy is refused.
 */
export function copiesOf(history: History): FolderCopy[] {
  const { moments, hasJournals } = history;
  const last = moments.length - 1;
  const copies: FolderCopy[] = [];
  for (const node of moments[0].disks.keys())
    for (const isLive of [true, false])
      for (const hasJournal of hasJournals ? [true, false] : [false])
        for (let moment = 0; moment <= last; moment++) {
          const copy = { node, moment, isLive, hasJournal };
          copies.push({ ...copy, others: last });
          const isRefused = hasJournals && !hasJournal;
          if (isLive || !isRefused || !hasEverything(history, node)) continue;
          for (let others = 1; others < last; others++) copies.push({ ...copy, others });
        }
  return copies;
}

function hasEverything(history: History, node: number): boolean {
  const { moments } = history;
  const extents = moments.at(-1)!.metadata.filter(({ key }) => key.startsWith('extent/'));
  return extents.every(({ value }) => (JSON.parse(value) as ExtentRecord).replicas.includes(numberOf(history, node)));
}

function numberOf({ moments }: Pick<History, 'moments'>, node: number): number {
  const nodes = moments.at(-1)!.metadata.filter(({ key }) => key.startsWith('node/'));
  const own = nodes.find(({ value }) => (JSON.parse(value) as NodeRecord).folder === `machine${node}`);
  return Number(own!.key.slice('node/'.length));
}

/** Returns what is wrong. Reads may wait where other folders went back as well. */
export async function startCopy(history: History, copy: FolderCopy): Promise<string[]> {
  const { steps, hasJournals, moments, acknowledged } = history;
  const { node: k, moment, isLive, hasJournal, others } = copy;
  const { nodes, ...rest } = optionsOf(steps, hasJournals);
  const cluster = new Cluster(2, { ...rest, nodes: nodes + 1 });
  const run = <T>(work: Promise<T>) => until(cluster.events, work);
  const ask = cluster.managerFrom('client');
  const elsewhere = cluster.machines[nodes];
  const original = cluster.machines[k];
  await run(cluster.restoreMetadata(moments.at(-1)!.metadata));
  for (const [n, { disk, journal }] of cluster.machines.slice(0, nodes).entries()) {
    const then = moments[n === k ? moments.length - 1 : others];
    disk.restore(then.disks[n]);
    journal?.restore(then.journals[n]);
  }
  elsewhere.disk.restore(moments[moment].disks[k]);
  if (hasJournal) elsewhere.journal!.restore(moments[moment].journals[k]);
  await run(cluster.startManager());
  for (const machine of cluster.machines)
    if (machine !== elsewhere && (isLive || machine !== original)) void cluster.startNode(machine);
  await run(cluster.sleep(REPAIR_MS));
  void cluster.startNode(elsewhere);
  await run(cluster.sleep(REPAIR_MS));
  if (isLive) cluster.stopNode(original, true);
  const problems: string[] = [];
  const { nodes: listedNodes } = await run(ask.call('status', {}, 1000));
  const listed = listedNodes.find(({ node }) => node === numberOf(history, k));
  if (listed?.refused !== undefined) problems.push(`the original counts as refused: ${listed.refused}`);
  if (isLive && listed?.address !== original.name)
    problems.push(`the copy has taken the place of node ${listed?.node}`);
  // It may wait.
  await run(cluster.writer(STREAM, 'early').catch(() => undefined));
  void cluster.startNode(original);
  await run(cluster.sleep(2 * REPAIR_MS));
  await run(cluster.writer(STREAM, 'after').catch(() => undefined));
  const texts: string[] = [];
  const waits = await readInto(texts, cluster);
  const missing = acknowledged.filter((text) => !texts.includes(text));
  const mayWait = others < moments.length - 1 && waits.length > 0;
  if (missing.length > 0 && !mayWait)
    problems.push(`not read: ${missing.map((text) => text.trimEnd())}; waits: ${waits.join('; ')}`);
  return problems;
}

/** A copy that may be the latest is started while the original is down. */
export interface AcceptedCopy extends Pick<FolderCopy, 'node' | 'moment'> {
  /** Otherwise it is elsewhere, and the original returns later. */
  readonly isInPlace: boolean;
  /** Other nodes that are down until it has joined. */
  readonly away: readonly number[];
}

export function acceptedCopiesOf({ moments }: History): AcceptedCopy[] {
  const nodes = [...moments[0].disks.keys()];
  const awayOf = (node: number) => {
    const sets: number[][] = [[]];
    for (const one of nodes) if (one !== node) sets.push(...sets.map((set) => [...set, one]));
    return sets;
  };
  return nodes.flatMap((node) =>
    [...moments.keys()].flatMap((moment) =>
      [true, false].flatMap((isInPlace) => awayOf(node).map((away) => ({ node, moment, isInPlace, away }))),
    ),
  );
}

/** Returns what is wrong, and whether the copy joined as the node. While nodes are away reads may wait. */
export async function replaceByCopy(
  { steps, hasJournals, moments, acknowledged }: History,
  { node: k, moment, isInPlace, away }: AcceptedCopy,
): Promise<{ readonly problems: string[]; readonly isAccepted: boolean }> {
  const { nodes, ...rest } = optionsOf(steps, hasJournals);
  const cluster = new Cluster(2, { ...rest, nodes: nodes + 1 });
  const run = <T>(work: Promise<T>) => until(cluster.events, work);
  const elsewhere = cluster.machines[nodes];
  const original = cluster.machines[k];
  const copy = isInPlace ? original : elsewhere;
  const restore = ({ disk, journal }: Machine, at: number, from: number) => {
    disk.restore(moments[at].disks[from]);
    journal?.restore(moments[at].journals[from]);
  };
  await run(cluster.restoreMetadata(moments.at(-1)!.metadata));
  for (const [n, machine] of cluster.machines.slice(0, nodes).entries()) restore(machine, moments.length - 1, n);
  restore(copy, moment, k);
  await run(cluster.startManager());
  for (const [n, machine] of cluster.machines.slice(0, nodes).entries())
    if (n !== k && !away.includes(n)) void cluster.startNode(machine);
  void cluster.startNode(copy);
  await run(cluster.sleep(REPAIR_MS));
  const { number } = copy;
  const problems: string[] = [];
  const check = async (owner: string, mayWait: boolean) => {
    await run(cluster.writer(STREAM, owner).catch(() => undefined));
    const texts: string[] = [];
    const waits = await readInto(texts, cluster);
    const missing = acknowledged.filter((text) => !texts.includes(text));
    if (missing.length > 0 && (waits.length === 0 || !mayWait))
      problems.push(`${owner}: not read: ${missing.map((text) => text.trimEnd())}; waits: ${waits.join('; ')}`);
  };
  await check('early', true);
  for (const n of away) void cluster.startNode(cluster.machines[n]);
  if (!isInPlace) void cluster.startNode(original);
  await run(cluster.sleep(2 * REPAIR_MS));
  await check('after', false);
  return { problems, isAccepted: !cluster.emptied.has(copy) && number === numberOf({ moments }, k) };
}
