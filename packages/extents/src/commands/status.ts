import { setTimeout as delay } from 'node:timers/promises';
import { counted, defineDocument, type Output } from '@rocev2/command';
import { formatBytes } from 'rocev2/internal/core';
import { type ClusterStatus, diskOf, type JournalUse } from '../index.js';
import { REPLICAS } from '../metadata-schema.js';
import { type ClusterOptions, withCluster } from './cluster.js';
import { ownerText } from './disk-commands.js';
import { printStreams } from './streams.js';

const EXTENTS_STATUS_DOCUMENT = defineDocument<ExtentsStatusResult>('extents-status');

const WATCH_MS = 1000;
const CLEAR_SCREEN = '\u001b[H\u001b[2J';

export interface StatusOptions extends ClusterOptions {
  readonly watch?: boolean;
}

/** The fields of `extents status --json`. */
export interface ExtentsStatusResult extends ClusterStatus {
  /** The managers that were asked, `HOST:PORT` with commas between them. */
  readonly manager: string;
}

export async function runStatus({ watch, ...options }: StatusOptions, output: Output): Promise<void> {
  await withCluster(options, output, async (client, manager) => {
    for (;;) {
      const status = await client.status();
      if (watch === true && output.io.stdout.isTTY === true) output.io.stdout.write(CLEAR_SCREEN);
      print(status, manager, output);
      output.document(EXTENTS_STATUS_DOCUMENT, { manager, ...status });
      if (watch !== true) return;
      await delay(WATCH_MS, undefined, { signal: output.io.interrupted }).catch(() => {});
      if (output.io.interrupted.aborted) return;
      output.line();
    }
  });
}

function print(
  { cluster, metadata, managers, nodes, streams, nodesNeeded, extents, waiting, counters }: ClusterStatus,
  manager: string,
  output: Output,
): void {
  output.line(`cluster ${cluster}, manager ${manager}`);
  const several = managers.length > 1 ? managers : [];
  for (const { address, leads, since } of several)
    output.line(`${address} ${leads ? 'leads' : 'waits'} since ${since}`);
  if (metadata.reason !== undefined) output.line(`all requests are refused: ${metadata.reason}`);
  output.line();
  const hasJournals = nodes.some(({ journal }) => journal !== undefined);
  output.table(
    [
      { title: 'node', align: 'right' },
      { title: 'address', align: 'left' },
      { title: 'domain', align: 'left' },
      { title: 'state', align: 'left' },
      { title: 'replicas', align: 'right' },
      { title: 'fragments', align: 'right' },
      { title: 'used', align: 'right' },
      { title: 'free', align: 'right' },
      { title: 'repaired', align: 'right' },
      ...(hasJournals ? [{ title: 'journal', align: 'right' } as const] : []),
    ],
    nodes.map(
      ({
        node,
        address,
        domain,
        state,
        replicas,
        fragments,
        usedBytes,
        freeBytes,
        damaged,
        repaired,
        readOnly,
        journal,
      }) => [
        node,
        address,
        domain,
        readOnly === undefined ? state : `${state}: ${readOnly}`,
        replicas,
        fragments,
        formatBytes(usedBytes),
        formatBytes(freeBytes),
        `${repaired} of ${damaged}`,
        ...(hasJournals ? [journalText(journal)] : []),
      ],
    ),
  );
  output.line();
  const isOfDisk = (name: string) => diskOf(name) !== undefined;
  printStreams(
    streams.filter(({ stream }) => !isOfDisk(stream)),
    output,
  );
  output.line();
  printDiskStreams(streams, output);
  const { open, sealed, coded, underReplicated, unavailable, copying, coding } = extents;
  output.line(
    `extents: ${open} open, ${sealed} sealed (${coded} coded), ${underReplicated} under-replicated, ${unavailable} unavailable`,
  );
  const { seals, copies, codings, rebuilds, deleted } = counters;
  output.line(
    `since the manager began: ${counted(seals, 'seal')}, ${counted(copies, 'copy', 'copies')} made, ${counted(codings, 'extent')} coded, ${counted(rebuilds, 'fragment')} rebuilt, ${counted(deleted, 'extent')} deleted; ${counted(copying, 'copy', 'copies')}, ${counted(coding, 'coding')} in progress`,
  );
  for (const { node, unverified, refused, copy } of nodes) {
    if (unverified !== undefined)
      output.line(`node ${node} went down with ${counted(unverified, 'open replica')}, not yet compared with others`);
    if (refused !== undefined) output.line(refused);
    if (copy !== undefined) output.line(copy);
  }
  for (const { extent, reason } of waiting) output.line(`extent ${extent} waits to be sealed: ${reason}`);
  const missing = whatWaits({ nodes, nodesNeeded });
  if (missing !== undefined) output.line(missing);
}

function journalText(journal: JournalUse | undefined): string {
  return journal === undefined ? '-' : `${formatBytes(journal.usedBytes)} of ${formatBytes(journal.bytes)}`;
}

function whatWaits({ nodes, nodesNeeded }: Pick<ClusterStatus, 'nodes' | 'nodesNeeded'>): string | undefined {
  const count = nodes.filter(({ state }) => state === 'up').length;
  if (count >= nodesNeeded) return undefined;
  const needed = `${counted(count, 'node takes', 'nodes take')} data, and ${nodesNeeded} are needed`;
  return count < REPLICAS ? `${needed}: appends wait` : `${needed} for all extents to be whole and coded`;
}

function printDiskStreams(streams: ClusterStatus['streams'], output: Output): void {
  const disks = new Map<string, { log?: ClusterStatus['streams'][number]; map?: ClusterStatus['streams'][number] }>();
  for (const stream of streams) {
    const of = diskOf(stream.stream);
    if (of !== undefined) disks.set(of.disk, { ...disks.get(of.disk), [of.part]: stream });
  }
  if (disks.size === 0) return;
  output.table(
    [
      { title: 'disk', align: 'left' },
      { title: 'extents', align: 'right' },
      { title: 'data', align: 'right' },
      { title: 'map', align: 'right' },
      { title: 'owner', align: 'left' },
    ],
    [...disks].map(([disk, { log, map }]) => [
      disk,
      (log?.extents ?? 0) + (map?.extents ?? 0),
      formatBytes(log?.sealedBytes ?? 0),
      formatBytes(map?.sealedBytes ?? 0),
      ownerText(log ?? {}),
    ]),
  );
  output.line();
}
