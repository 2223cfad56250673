/**
 * Histories of a cluster in virtual time, whose folders come back as they once were: the metadata of the manager, and
 * the folders of nodes. Afterwards every acknowledged record is read, or its read waits.
 */

import { until } from '../../../test/support/virtual-time.js';
import type { ExtentPlace } from '../src/messages.js';
import type { MetadataEntry } from '../src/metadata.js';
import { REPLICAS } from '../src/metadata-schema.js';
import { dataIn } from '../src/record.js';
import type { StreamWriter } from '../src/stream-writer.js';
import { Cluster, TIMING } from './cluster.js';

/** `copy`: a node with a replica is killed, its replicas are copied, and it comes back. `checkpoint`: nodes report. */
export const STEPS = ['open', 'append', 'ack', 'seal', 'copy', 'trim', 'checkpoint'] as const;
export type Step = (typeof STEPS)[number];

const STREAM = 's';
const NODES = 4;
const REPAIR_MS = TIMING.downMs + 8 * TIMING.reportMs;

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
    case 'trim':
      return isOwned && isSealed && !steps.includes('trim');
    default:
      return steps.length > 0 && steps.at(-1) !== 'checkpoint';
  }
}

/** Every folder of the cluster at one moment: the metadata, and the disks of the nodes. */
interface Moment {
  readonly metadata: readonly MetadataEntry[];
  readonly disks: ReadonlyArray<ReadonlyMap<string, Buffer>>;
}

export interface History {
  readonly moments: readonly Moment[];
  /** Records that were acknowledged and not trimmed. */
  readonly acknowledged: readonly string[];
}

const METADATA = 0;
/** Folders of a cluster: 0 is the metadata, then those of the nodes. */
export const FOLDERS = 1 + NODES;

export async function runHistory(steps: readonly Step[]): Promise<History> {
  const cluster = new Cluster(1, { nodes: NODES });
  const run = <T>(work: Promise<T>) => until(cluster.events, work);
  await run(cluster.start());
  const ask = cluster.managerFrom('client');
  await run(ask.call('createStream', { stream: STREAM }, 1000));
  const moments: Moment[] = [];
  const remember = async () => {
    moments.push({
      metadata: await run(cluster.imageOfMetadata()),
      disks: cluster.machines.map(({ disk }) => disk.image()),
    });
  };
  await remember();
  let writer: StreamWriter | undefined;
  let pending: Array<{ readonly text: string; readonly extent: Promise<number> }> = [];
  let acknowledged: Array<{ readonly text: string; readonly extent: number }> = [];
  const ack = async () => {
    for (const { text, extent } of pending) acknowledged.push({ text, extent: await run(extent) });
    pending = [];
  };
  for (const [k, step] of steps.entries()) {
    if (step === 'open') {
      await ack();
      writer = (await run(cluster.writer(STREAM, `owner${k}`))).writer;
    } else if (step === 'append') {
      const text = `record ${k}`;
      pending.push({ text, extent: writer!.append(Buffer.from(text)).then(({ extent }) => extent) });
    } else if (step === 'ack') await ack();
    else if (step === 'seal') {
      await ack();
      await run(writer!.close());
    } else if (step === 'trim') {
      const extent = acknowledged[0].extent;
      await run(ask.call('drop', { stream: STREAM, epoch: writer!.epoch, extents: [extent] }, 1000));
      acknowledged = acknowledged.filter((one) => one.extent !== extent);
      await run(cluster.sleep(2 * TIMING.repairMs + 2 * TIMING.reportMs));
    } else if (step === 'copy') {
      const { extents } = await run(ask.call('locate', { stream: STREAM }, 1000));
      const machine = cluster.machineOf(extents.at(-1)!.replicas[0])!;
      cluster.stopNode(machine, false);
      await run(cluster.sleep(REPAIR_MS));
      void cluster.startNode(machine);
      await run(cluster.sleep(2 * TIMING.reportMs));
    } else await run(cluster.sleep(2 * TIMING.reportMs));
    await remember();
  }
  return { moments, acknowledged: acknowledged.map(({ text }) => text) };
}

/** Which folder comes back as it was at which moment. */
export interface Replacement {
  readonly folder: number;
  readonly moment: number;
}

/** Earlier states that differ from the last one, each once. */
export function replacementsOf({ moments }: History): Replacement[] {
  const found: Replacement[] = [];
  for (let folder = 0; folder < FOLDERS; folder++) {
    const seen = new Set([stateOf(moments.at(-1)!, folder)]);
    for (let moment = 0; moment < moments.length - 1; moment++) {
      const state = stateOf(moments[moment], folder);
      if (!seen.has(state)) found.push({ folder, moment });
      seen.add(state);
    }
  }
  return found;
}

function stateOf({ metadata, disks }: Moment, folder: number): string {
  if (folder === METADATA) return JSON.stringify(metadata);
  return [...disks[folder - 1]].map(([name, bytes]) => `${name} ${bytes.toString('base64')}`).join();
}

/**
 * Ends all processes after the history, replaces folders, and starts everything again; nodes in the order of `order`.
 * Returns what is wrong. With one replaced folder everything is read in the end; with more, reads may wait.
 */
export async function travel(
  { moments, acknowledged }: History,
  replaced: readonly Replacement[],
  order: readonly number[] = [0, 1, 2, 3],
): Promise<string[]> {
  const at = (folder: number) => moments[replaced.find((one) => one.folder === folder)?.moment ?? moments.length - 1];
  const cluster = new Cluster(2, { nodes: NODES });
  const run = <T>(work: Promise<T>) => until(cluster.events, work);
  const ask = cluster.managerFrom('client');
  await run(cluster.restoreMetadata(at(METADATA).metadata));
  for (const [k, { disk }] of cluster.machines.entries()) disk.restore(at(k + 1).disks[k]);
  await run(cluster.startManager());
  for (const k of order) {
    void cluster.startNode(cluster.machines[k]);
    await run(cluster.sleep(TIMING.reportMs));
  }
  await run(cluster.sleep(REPAIR_MS));
  const problems = cluster.machines.flatMap((_, k) => lostFiles(cluster, k, at(k + 1).disks[k]));
  const { metadata } = await run(ask.call('status', {}, 1000));
  if (metadata.state !== 'current') {
    if (metadata.state === 'unverified' && replaced.length === 1) problems.push(`${metadata.reason}`);
    await run(ask.call('recover', {}, 1000));
    await run(cluster.sleep(REPAIR_MS));
  }
  const waits: string[] = [];
  const owned = await run(
    cluster.writer(STREAM, 'after').then(
      () => true,
      (error: Error) => waits.push(error.message) === 0,
    ),
  );
  const texts: string[] = [];
  const located = ask.call('locate', { stream: STREAM }, 1000).catch((error: Error) => {
    waits.push(error.message);
    return { extents: [] as readonly ExtentPlace[] };
  });
  for (const place of (await run(located)).extents) {
    const scan = async () => {
      for await (const { head, bytes } of cluster.reader().scan([place])) texts.push(dataIn(bytes, head).toString());
    };
    await run(scan().catch((error: Error) => waits.push(error.message)));
  }
  const missing = acknowledged.filter((text) => !texts.includes(text));
  if (missing.length > 0 && (waits.length === 0 || replaced.length === 1))
    problems.push(`not read: ${missing}; owned ${owned}, waits: ${waits.join('; ')}`);
  return problems;
}

/** Replicas that are neither there nor in quarantine, although their extent is not on three other nodes. */
function lostFiles({ machines }: Cluster, k: number, before: ReadonlyMap<string, Buffer>): string[] {
  const has = (name: string) => machines.filter(({ disk }) => disk.files.has(name)).length;
  const { files } = machines[k].disk;
  if (![...before.keys()].some((name) => name.endsWith('.extent') && isHere(name))) return []; // Refused, and emptied.
  return [...before.keys()]
    .filter((name) => name.endsWith('.extent') && !isHere(name) && has(name) < REPLICAS)
    .map((name) => `${name} was deleted`);

  function isHere(name: string): boolean {
    return files.has(name) || files.has(`${name}.deleted`);
  }
}
