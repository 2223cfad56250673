import { defineDocument, type Output } from '@rocev2/command';
import { formatBytes } from 'rocev2/internal/core';
import type { ListedStreamDisk } from '../index.js';
import { type ClusterOptions, withCluster } from './cluster.js';
import { sayingIfSlow } from './slow-cluster.js';
import { checkNodes } from './streams.js';

const EXTENTS_DISK_CREATE_DOCUMENT = defineDocument<ExtentsDiskCreateResult>('extents-disk-create');
const EXTENTS_DISK_LS_DOCUMENT = defineDocument<ExtentsDiskListResult>('extents-disk-ls');
const EXTENTS_DISK_SNAPSHOT_DOCUMENT = defineDocument<ExtentsDiskCopyResult>('extents-disk-snapshot');
const EXTENTS_DISK_CLONE_DOCUMENT = defineDocument<ExtentsDiskCopyResult>('extents-disk-clone');
const EXTENTS_DISK_RM_DOCUMENT = defineDocument<ExtentsDiskRemoveResult>('extents-disk-rm');

export interface CreateDiskCommandOptions extends ClusterOptions {
  readonly size: number;
}

/** The fields of `extents disk create --json`. */
export interface ExtentsDiskCreateResult {
  /** Its name. */
  readonly disk: string;
  /** How much fits onto it. */
  readonly sizeBytes: number;
}

/** The fields of `extents disk ls --json`. */
export interface ExtentsDiskListResult {
  /** By name. */
  readonly disks: readonly ListedStreamDisk[];
}

/** The fields of `extents disk snapshot --json` and `clone --json`. */
export interface ExtentsDiskCopyResult {
  /** The disk that was copied. */
  readonly disk: string;
  /** Name of the new one. */
  readonly copy: string;
}

/** The fields of `extents disk rm --json`. */
export interface ExtentsDiskRemoveResult {
  /** Its name. */
  readonly disk: string;
}

export async function runDiskCreate(disk: string, options: CreateDiskCommandOptions, output: Output): Promise<void> {
  const { size: sizeBytes } = options;
  await withCluster(options, output, async (client) => {
    await checkNodes(client);
    await sayingIfSlow(client.createDisk(disk, { sizeBytes }), output, () => client.status());
  });
  output.line(`made '${disk}' of ${formatBytes(sizeBytes)}`);
  output.document(EXTENTS_DISK_CREATE_DOCUMENT, { disk, sizeBytes });
}

export async function runDiskList(options: ClusterOptions, output: Output): Promise<void> {
  const disks = await withCluster(options, output, (client) => client.disks());
  printDisks(disks, output);
  output.document(EXTENTS_DISK_LS_DOCUMENT, { disks });
}

export function ownerText({ owner = '-', address }: { readonly owner?: string; readonly address?: string }): string {
  return address === undefined ? owner : `${owner}, at ${address}`;
}

export function printDisks(disks: readonly ListedStreamDisk[], output: Output): void {
  if (disks.length === 0) {
    output.line('no disks');
    return;
  }
  output.table(
    [
      { title: 'disk', align: 'left' },
      { title: 'size', align: 'right' },
      { title: 'kind', align: 'left' },
      { title: 'of', align: 'left' },
      { title: 'extents', align: 'right' },
      { title: 'sealed', align: 'right' },
      { title: 'owner', align: 'left' },
    ],
    disks.map(({ disk, sizeBytes, isSnapshot, parent, extents, storedBytes, ...place }) => [
      disk,
      sizeBytes === undefined ? '?' : formatBytes(sizeBytes),
      isSnapshot ? 'snapshot' : parent === undefined ? 'disk' : 'clone',
      parent ?? '-',
      extents,
      formatBytes(storedBytes),
      ownerText(place),
    ]),
  );
}

export async function runDiskSnapshot(
  disk: string,
  copy: string,
  options: ClusterOptions,
  output: Output,
): Promise<void> {
  await withCluster(options, output, async (client) => {
    await checkNodes(client);
    await sayingIfSlow(client.snapshotDisk(disk, copy), output, () => client.status());
  });
  output.line(`'${copy}' is what '${disk}' has now`);
  output.document(EXTENTS_DISK_SNAPSHOT_DOCUMENT, { disk, copy });
}

export async function runDiskClone(disk: string, copy: string, options: ClusterOptions, output: Output): Promise<void> {
  await withCluster(options, output, async (client) => {
    await checkNodes(client);
    await sayingIfSlow(client.cloneDisk(disk, copy), output, () => client.status());
  });
  output.line(`'${copy}' begins with what '${disk}' has now`);
  output.document(EXTENTS_DISK_CLONE_DOCUMENT, { disk, copy });
}

export async function runDiskRemove(disk: string, options: ClusterOptions, output: Output): Promise<void> {
  await withCluster(options, output, (client) => client.deleteDisk(disk));
  output.line(`deleted '${disk}'`);
  output.document(EXTENTS_DISK_RM_DOCUMENT, { disk });
}
