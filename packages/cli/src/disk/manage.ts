import { defineDocument, leftAligned, type Output, rightAligned } from '@rocev2/command';
import { formatBytes } from 'rocev2/internal/core';
import { changeDisks, chooseDiskServer, type DiskServer, findDiskServers } from './disk-control.js';
import type { DiskEntry } from './disk-entries.js';

/** The fields of `disk ls`, `create`, `resize` and `rm --json`. */
interface DiskListResult {
  /** Storage servers, each with all of its disks with names. */
  readonly servers: readonly DiskServer[];
}

const DISK_LS_DOCUMENT = defineDocument<DiskListResult>('disk-ls');
const DISK_CREATE_DOCUMENT = defineDocument<DiskListResult>('disk-create');
const DISK_RESIZE_DOCUMENT = defineDocument<DiskListResult>('disk-resize');
const DISK_RM_DOCUMENT = defineDocument<DiskListResult>('disk-rm');

export interface ManageOptions {
  readonly server?: string;
}

/** A disk as written on the command line. */
export interface WrittenDisk {
  readonly text: string;
  readonly entry: DiskEntry;
}

export async function runCreate(
  { text, entry: { name } }: WrittenDisk,
  options: ManageOptions,
  output: Output,
): Promise<void> {
  const at = await chooseDiskServer(options.server);
  const disks = await changeDisks(at, 'create', { disk: text });
  output.line(`made '${name}' at ${at}`);
  output.document(DISK_CREATE_DOCUMENT, { servers: [{ at, disks }] });
}

export async function runResize(name: string, bytes: number, options: ManageOptions, output: Output): Promise<void> {
  const at = await chooseDiskServer(options.server);
  const disks = await changeDisks(at, 'resize', { name, bytes: `${bytes}` });
  output.line(`'${name}' at ${at} has ${formatBytes(bytes)}; gateways see it after a restart`);
  output.document(DISK_RESIZE_DOCUMENT, { servers: [{ at, disks }] });
}

export async function runRemove(
  name: string,
  options: ManageOptions & { readonly force?: boolean },
  output: Output,
): Promise<void> {
  const at = await chooseDiskServer(options.server);
  const disks = await changeDisks(at, 'remove', { name, force: `${options.force === true}` });
  output.line(`'${name}' is no longer served at ${at}; its data in the file or at the NBD server is kept`);
  output.document(DISK_RM_DOCUMENT, { servers: [{ at, disks }] });
}

export async function runList({ server }: ManageOptions, output: Output): Promise<void> {
  const servers = (await findDiskServers()).filter(({ at }) => server === undefined || at === server);
  if (servers.length === 0) output.line('no storage server with named disks runs here');
  else printServers(servers, output);
  output.document(DISK_LS_DOCUMENT, { servers });
}

function printServers(servers: readonly DiskServer[], output: Output): void {
  output.table(
    [...leftAligned('server', 'disk'), ...rightAligned('size'), ...leftAligned('store', 'access', 'UUID')],
    servers.flatMap(({ at, disks }) =>
      disks.map(({ name, sizeBytes, store, readOnly, writers, uuid }) => {
        const access = writers.length > 0 ? `written by ${writers.join(', ')}` : readOnly ? 'read-only' : 'free';
        return [at, name, formatBytes(sizeBytes), store, access, uuid ?? '-'];
      }),
    ),
  );
}
