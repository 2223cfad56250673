/**
 * Histories of a cluster in virtual time, whose folders come back as they once were: the metadata of the manager, the
 * folders of nodes and their journals, and the memory of the owner. Afterwards every acknowledged record is read, or its
 * read waits.
 */

import { until } from '../../../test/support/virtual-time.js';
import type { ExtentPlace } from '../src/messages.js';
import type { MetadataEntry } from '../src/metadata.js';
import { REPLICAS } from '../src/metadata-schema.js';
import { dataIn, encodeRecord, recordBytes } from '../src/record.js';
import type { Location, StreamWriter } from '../src/stream-writer.js';
import { Cluster, TIMING } from './cluster.js';

/**
 * `copy`: a node with a replica is killed, its replicas are copied, and it comes back. `code`: sealed extents are coded.
 * `checkpoint`: nodes report.
 */
export const STEPS = ['open', 'append', 'ack', 'seal', 'copy', 'code', 'trim', 'checkpoint'] as const;
export type Step = (typeof STEPS)[number];

export const STREAM = 's';
const NODES = 4;
const CODE = 'rs-6-3';
const CODING_NODES = 10;
/** Short extents are not coded. */
const PADDING = ' '.repeat(40_000);
const JOURNAL_BYTES = 64 << 10;
export const REPAIR_MS = TIMING.downMs + 8 * TIMING.reportMs;

/** All histories of at most so many steps, without those whose last step has nothing to do. */
export function histories(most: number): Step[][] {
  const all: Step[][] = [];
  const add = (steps: readonly Step[]) => {
    if (steps.length > 0) all.push([...steps]);
    if (steps.length === most) return;
    for (const step of STEPS) if (canFollow(steps, step)) add([...steps, step]);
  };
  add([]);
  return all;
}

function canFollow(steps: readonly Step[], next: Step): boolean {
  const owner = Math.max(steps.lastIndexOf('open'), steps.lastIndexOf('seal'));
  const isOwned = owner >= 0 && steps[owner] === 'open';
  const pending = steps.lastIndexOf('append') > steps.lastIndexOf('ack');
  const isSealed = steps.some(
    (step, k) => step === 'ack' && steps.slice(k).some((one) => one === 'seal' || one === 'open'),
  );
  switch (next) {
    case 'open':
      return !isOwned || steps.at(-1) !== 'open';
    case 'append':
      return isOwned && steps.slice(-2).join() !== 'append,append';
    case 'ack':
      return isOwned && pending;
    case 'seal':
      return isOwned;
    case 'copy':
      return steps.includes('ack') && steps.at(-1) !== 'copy';
    case 'code':
      return isSealed && !steps.includes('code') && !isOwned;
    case 'trim':
      return isOwned && isSealed && !steps.includes('trim');
    default:
      return steps.length > 0 && steps.at(-1) !== 'checkpoint';
  }
}

/** What an owner knows. */
interface OwnerState {
  readonly epoch: number;
  readonly extent: ExtentPlace | undefined;
  /** Bytes that it knows to be acknowledged. */
  readonly acked: number;
}

/** Every folder of the cluster at one moment. */
interface Moment {
  readonly metadata: readonly MetadataEntry[];
  readonly disks: ReadonlyArray<ReadonlyMap<string, Buffer>>;
  readonly journals: ReadonlyArray<ReadonlyMap<string, Buffer>>;
  readonly owner: OwnerState | undefined;
}

export interface History {
  readonly steps: readonly Step[];
  readonly hasJournals: boolean;
  readonly moments: readonly Moment[];
  /** Records that were acknowledged and not trimmed. */
  readonly acknowledged: readonly string[];
}

type FolderName = 'metadata' | 'owner' | `node ${number}` | `journal ${number}`;

export function optionsOf(steps: readonly Step[], hasJournals: boolean) {
  return { nodes: steps.includes('code') ? CODING_NODES : NODES, ...(hasJournals && { journalBytes: JOURNAL_BYTES }) };
}

export async function runHistory(steps: readonly Step[], hasJournals = false): Promise<History> {
  const cluster = new Cluster(1, optionsOf(steps, hasJournals));
  const run = <T>(work: Promise<T>) => until(cluster.events, work);
  await run(cluster.start());
  const ask = cluster.managerFrom('client');
  await run(ask.call('createStream', { stream: STREAM }, 1000));
  const moments: Moment[] = [];
  let writer: StreamWriter | undefined;
  let ends: Array<{ readonly extent: number; readonly end: number }> = [];
  const ackedIn = (extent: number | undefined) =>
    Math.max(0, ...ends.filter((one) => one.extent === extent).map(({ end }) => end));
  const remember = async () => {
    moments.push({
      metadata: await run(cluster.imageOfMetadata()),
      disks: cluster.machines.map(({ disk }) => disk.image()),
      journals: cluster.machines.map(({ journal }) => journal?.image() ?? new Map()),
      owner: writer && { epoch: writer.epoch, extent: writer.extent, acked: ackedIn(writer.extent?.extent) },
    });
  };
  await remember();
  let pending: Array<{ readonly text: string; readonly at: Promise<Location> }> = [];
  let acknowledged: Array<{ readonly text: string; readonly extent: number }> = [];
  const ack = async () => {
    for (const { text, at } of pending) {
      const { extent, offset } = await run(at);
      acknowledged.push({ text, extent });
      ends = [...ends, { extent, end: offset + recordBytes(text.length) }];
    }
    pending = [];
  };
  for (const [k, step] of steps.entries()) {
    if (step === 'open') {
      await ack();
      writer = (await run(cluster.writer(STREAM, `owner${k}`))).writer;
    } else if (step === 'append') {
      const text = `record ${k}${steps.includes('code') ? PADDING : ''}`;
      pending.push({ text, at: writer!.append(Buffer.from(text)) });
    } else if (step === 'ack') await ack();
    else if (step === 'seal') {
      await ack();
      await run(writer!.close());
      writer = undefined;
    } else if (step === 'trim') {
      const extent = acknowledged[0].extent;
      await run(ask.call('drop', { stream: STREAM, epoch: writer!.epoch, extents: [extent] }, 1000));
      acknowledged = acknowledged.filter((one) => one.extent !== extent);
      await run(cluster.sleep(2 * TIMING.repairMs + 2 * TIMING.reportMs));
    } else if (step === 'code') {
      cluster.killManager();
      cluster.code = CODE;
      await run(cluster.startManager());
      await run(cluster.sleep(TIMING.codeAfterMs + 10 * TIMING.repairMs));
    } else if (step === 'copy') {
      const { extents } = await run(ask.call('locate', { stream: STREAM }, 1000));
      const { replicas, coded } = extents.at(-1)!;
      const machine = cluster.machineOf(replicas[0] ?? coded!.fragments[0])!;
      cluster.stopNode(machine, false);
      await run(cluster.sleep(REPAIR_MS));
      void cluster.startNode(machine);
      await run(cluster.sleep(2 * TIMING.reportMs));
    } else await run(cluster.sleep(2 * TIMING.reportMs));
    await remember();
  }
  return { steps, hasJournals, moments, acknowledged: acknowledged.map(({ text }) => text) };
}

/** Which folder comes back as it was at which moment. */
export interface Replacement {
  readonly folder: FolderName;
  readonly moment: number;
}

/** Earlier states that differ from the last one, each once. */
export function replacementsOf({ moments, hasJournals }: History): Replacement[] {
  const machines = moments[0].disks.map((_, k) => k);
  const folders: FolderName[] = [
    'metadata',
    ...machines.map((k): FolderName => `node ${k}`),
    ...(hasJournals ? machines.map((k): FolderName => `journal ${k}`) : []),
    'owner',
  ];
  const found: Replacement[] = [];
  for (const folder of folders) {
    const seen = new Set([stateOf(moments.at(-1)!, folder), undefined]);
    for (let moment = 0; moment < moments.length - 1; moment++) {
      const state = stateOf(moments[moment], folder);
      if (!seen.has(state)) found.push({ folder, moment });
      seen.add(state);
    }
  }
  return found;
}

function stateOf({ metadata, disks, journals, owner }: Moment, folder: FolderName): string | undefined {
  if (folder === 'metadata') return JSON.stringify(metadata);
  if (folder === 'owner') return owner && JSON.stringify(owner);
  const [kind, k] = folder.split(' ');
  const image = (kind === 'node' ? disks : journals)[Number(k)];
  return [...image].map(([name, bytes]) => `${name} ${bytes.toString('base64')}`).join();
}

/**
 * Ends all processes after the history, replaces folders, and starts everything again; nodes in the order of `order`.
 * Returns what is wrong. With one replaced folder everything is read in the end; with more, reads may wait.
 */
export async function travel(
  { steps, hasJournals, moments, acknowledged }: History,
  replaced: readonly Replacement[],
  order: readonly number[] = moments[0].disks.map((_, k) => k),
): Promise<string[]> {
  const at = (folder: FolderName) =>
    moments[replaced.find((one) => one.folder === folder)?.moment ?? moments.length - 1];
  const cluster = new Cluster(2, optionsOf(steps, hasJournals));
  if (steps.includes('code')) cluster.code = CODE;
  const run = <T>(work: Promise<T>) => until(cluster.events, work);
  const ask = cluster.managerFrom('client');
  await run(cluster.restoreMetadata(at('metadata').metadata));
  for (const [k, { disk, journal }] of cluster.machines.entries()) {
    disk.restore(at(`node ${k}`).disks[k]);
    journal?.restore(at(`journal ${k}`).journals[k]);
  }
  await run(cluster.startManager());
  for (const k of order) {
    void cluster.startNode(cluster.machines[k]);
    await run(cluster.sleep(TIMING.reportMs));
  }
  await run(cluster.sleep(REPAIR_MS));
  const problems = cluster.machines.flatMap((_, k) => lostFiles(cluster, k, at(`node ${k}`).disks[k]));
  const { metadata } = await run(ask.call('status', {}, 1000));
  if (metadata.state !== 'current') {
    if (metadata.state === 'unverified' && replaced.length === 1) problems.push(`${metadata.reason}`);
    await run(ask.call('recover', {}, 1000));
    await run(cluster.sleep(REPAIR_MS));
  }
  if (replaced.some(({ folder }) => folder === 'owner')) await run(continueOwner(cluster, at('owner').owner!));
  const waits: string[] = [];
  const owned = await run(
    cluster.writer(STREAM, 'after').then(
      () => true,
      (error: Error) => waits.push(error.message) === 0,
    ),
  );
  const texts: string[] = [];
  waits.push(...(await readInto(texts, cluster)));
  const missing = acknowledged.filter((text) => !texts.includes(text));
  if (missing.length > 0 && (waits.length === 0 || replaced.length === 1))
    problems.push(`not read: ${missing.map((text) => text.trimEnd())}; owned ${owned}, waits: ${waits.join('; ')}`);
  return problems;
}

/** Reads all extents of the stream, and resolves to what failed. */
export async function readInto(texts: string[], cluster: Cluster): Promise<string[]> {
  const failures: string[] = [];
  const run = <T>(work: Promise<T>) => until(cluster.events, work);
  const located = cluster
    .managerFrom('client')
    .call('locate', { stream: STREAM }, 1000)
    .catch((error: Error) => {
      failures.push(error.message);
      return { extents: [] as readonly ExtentPlace[] };
    });
  for (const place of (await run(located)).extents) {
    const scan = async () => {
      for await (const { head, bytes } of cluster.reader().scan([place])) texts.push(dataIn(bytes, head).toString());
    };
    await run(scan().catch((error: Error) => void failures.push(error.message)));
  }
  return failures;
}

/** An owner that knows only what it knew at an earlier moment continues, and appends a record. */
async function continueOwner(cluster: Cluster, { epoch, extent, acked }: OwnerState): Promise<void> {
  const where = extent === undefined ? { acked: 0 } : { extent: extent.extent, acked };
  const request = { stream: STREAM, epoch, suspects: [], ...where };
  try {
    const place = await cluster.managerFrom('client').call('advance', request, TIMING.callMs);
    const identity = { extent: place.extent, offset: 0, writer: epoch, sequence: 1000, committed: 0 };
    const record = encodeRecord(identity, Buffer.from('late'));
    const [primary, ...secondaries] = place.replicas;
    const append = { extent: place.extent, epoch: place.epoch, offset: 0, record, secondaries };
    await cluster.nodesFrom('client').call(primary, 'append', append, TIMING.callMs);
  } catch (error) {
    if (!(error instanceof Error)) throw error; // It may be fenced, or wait.
  }
}

/** Replicas that are neither there nor in quarantine, although their extent is not on three other nodes. */
function lostFiles({ machines, emptied }: Cluster, k: number, before: ReadonlyMap<string, Buffer>): string[] {
  const has = (name: string) => machines.filter(({ disk }) => disk.files.has(name)).length;
  const { files } = machines[k].disk;
  if (emptied.has(machines[k])) return []; // Refused.
  return [...before.keys()]
    .filter((name) => name.endsWith('.extent') && !isHere(name) && has(name) < REPLICAS)
    .map((name) => `${name} was deleted`);

  function isHere(name: string): boolean {
    return files.has(name) || files.has(`${name}.deleted`);
  }
}
