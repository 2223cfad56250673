import { choiceOption, type Output, type SecureFlags, secureFlagsOf, sizeOption } from '@rocev2/command';
import { isStreamBackend, openStandingBackend, openStreamBackend, type StandbyDisk } from '@rocev2/extents/internal';
import type { Command } from 'commander';
import { formatBytes, RoceError } from 'rocev2/internal/core';
import { type BlockDevice, FileDevice, openBackend, PROVISIONS, type Provision, Scrubber } from 'rocev2/internal/disk';
import { SYSTEM_CLOCK } from 'rocev2/internal/driver';
import type { DiskDocument } from 'rocev2/internal/estats';
import { openNvmeBackend } from './nvme-backend.js';

export interface BackendFlags {
  /** Size in bytes of a new disk. */
  readonly size?: number;
  readonly create?: boolean;
  readonly grow?: boolean;
  readonly name?: string;
  readonly provision?: Provision;
  /** Memory for the table of checksums, bytes. */
  readonly tableMemory?: number;
  readonly scrub?: number;
}

export function addBackendOptions(command: Command): Command {
  return command
    .option('--size <size>', 'size of a disk in memory or in a new file', sizeOption)
    .option('--create', 'make a blank disk although checksums of an older disk exist whose data is missing or empty')
    .option('--name <name>', 'name of a new disk in a file (default: the name of the file)')
    .option(
      '--provision <kind>',
      'thin: blocks are allocated when they are written; thick: all blocks stay allocated (default: thin for new files)',
      choiceOption(PROVISIONS),
    )
    .option('--table-memory <size>', 'memory for the checksums of a file (default: 64MiB)', sizeOption)
    .option('--scrub <size>', 'background scrub rate of files per second, e.g. 10MiB', sizeOption);
}

export function givenBackendOption(flags: BackendFlags): string | undefined {
  const names = { size: '--size', create: '--create', name: '--name', provision: '--provision' } as const;
  const more = { tableMemory: '--table-memory', scrub: '--scrub' } as const;
  return Object.entries({ ...names, ...more }).find(([flag]) => flags[flag as keyof BackendFlags] !== undefined)?.[1];
}

export interface OwnDisk extends AsyncDisposable {
  readonly device: BlockDevice;
  readonly standing?: StandbyDisk;
  facts(): DiskDocument['file'];
}

export async function openOwnDisk(
  backend: string,
  flags: BackendFlags & SecureFlags,
  output: Output,
  { stands = false } = {},
): Promise<OwnDisk> {
  const { size, create, grow, name, provision, tableMemory, scrub } = flags;
  if (scrub !== undefined && !backend.startsWith('file:')) {
    throw new RoceError('ERR_ROCE_CONFLICT', 'only a disk in a file can be scrubbed', 'leave out --scrub');
  }
  const onNotice = (notice: string) => output.note(notice);
  if (backend.startsWith('nvme')) return openNamespace(backend, flags, onNotice);
  if (isStreamBackend(backend)) return openStream(backend, flags, output, stands);
  const device = await openBackend(backend, size, {
    ...(create !== undefined && { create }),
    ...(grow !== undefined && { grow }),
    ...(name !== undefined && { name }),
    ...(provision !== undefined && { provision }),
    ...(tableMemory !== undefined && { tableMemoryBytes: tableMemory }),
    onNotice,
  });
  if (!(device instanceof FileDevice)) {
    return { device, facts: () => null, [Symbol.asyncDispose]: () => device.close() };
  }
  if (device.unsettledRegions > 0) {
    const open = formatBytes(device.unsettledRegions * (64 << 20));
    onNotice(`the disk was not closed: up to ${open} are checked in the background while it is served`);
  }
  const scrubber =
    scrub === undefined
      ? undefined
      : new Scrubber({ disk: device, clock: SYSTEM_CLOCK, bytesPerSecond: scrub, onNotice });
  return {
    device,
    facts: () => ({
      tableMemoryBytes: device.tableMemoryBytes,
      unsettledRegions: device.unsettledRegions,
      damagedReads: device.checksumErrors,
      scrub:
        scrubber === undefined
          ? null
          : {
              passes: scrubber.passes,
              checkedBytes: scrubber.checkedBytes,
              damagedBlocks: scrubber.damagedBlocks,
              unreadableBytes: scrubber.unreadableBytes,
            },
    }),
    [Symbol.asyncDispose]: async () => {
      await scrubber?.stop();
      await device.close();
    },
  };
}

async function openStream(
  backend: string,
  flags: BackendFlags & SecureFlags,
  output: Output,
  stands: boolean,
): Promise<OwnDisk> {
  const given = givenBackendOption(flags);
  if (given !== undefined) {
    const hint = "leave it out; 'rocev2 extents disk create' makes a disk of a size";
    throw new RoceError('ERR_ROCE_CONFLICT', `${given} does not fit a disk in a cluster`, hint);
  }
  const keys = secureFlagsOf(flags);
  if (stands) {
    const standing = await openStandingBackend(backend, keys, output);
    const { disk: device } = standing;
    return {
      device,
      standing: device,
      facts: () => null,
      [Symbol.asyncDispose]: () => standing[Symbol.asyncDispose](),
    };
  }
  const opened = await openStreamBackend(backend, keys, output);
  return { device: opened.disk, facts: () => null, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() };
}

async function openNamespace(
  backend: string,
  flags: BackendFlags,
  onNotice: (notice: string) => void,
): Promise<OwnDisk> {
  const given = (['size', 'create', 'name', 'provision', 'tableMemory'] as const).find(
    (flag) => flags[flag] !== undefined,
  );
  if (given === 'size') throw new RoceError('ERR_ROCE_CONFLICT', 'the target sets the size of a namespace');
  if (given !== undefined) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      'options of new disks and of files do not fit a namespace',
      'leave them out',
    );
  }
  const opened = await openNvmeBackend(backend, onNotice);
  return { device: opened.disk, facts: () => null, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() };
}
