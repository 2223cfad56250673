import type { Output } from '@rocev2/command';
import { isStreamBackend, openStreamBackend } from '@rocev2/extents/internal';
import { formatBytes, RoceError } from 'rocev2/internal/core';
import { type BlockDevice, MemoryDevice, openBackend } from 'rocev2/internal/disk';
import type { NvmeTargetServer } from '../live/nvme-target-server.js';
import type { TargetChange } from './changes.js';
import type { DiskOption } from './disk-option.js';
import type { OpenedDisk } from './nvme-backend.js';

export class ServedDisks implements AsyncDisposable {
  readonly #disks = new Map<string, BlockDevice>();
  readonly #opened = new Map<BlockDevice, OpenedDisk>();
  readonly #readOnly: boolean;
  readonly #output: Output;

  constructor(readOnly: boolean, output: Output) {
    this.#readOnly = readOnly;
    this.#output = output;
  }

  async open(options: readonly DiskOption[], sizeBytes: number | undefined): Promise<Map<string, BlockDevice[]>> {
    const subsystems = new Map<string, BlockDevice[]>();
    for (const { nqn, backend } of options) {
      const disk = await this.#open(backend, backend.startsWith('nbd') ? undefined : sizeBytes);
      const disks = [...(subsystems.get(nqn) ?? []), disk];
      subsystems.set(nqn, disks);
      this.#disks.set(keyOf(nqn, disks.length), disk);
    }
    return subsystems;
  }

  /** Rejects with ERR_ROCE_NOT_FOUND, ERR_ROCE_UNSUPPORTED or as `openBackend` does; then nothing has changed. */
  async change(server: NvmeTargetServer, change: TargetChange): Promise<string> {
    switch (change.kind) {
      case 'add':
        return this.#add(server, change.disk, change.sizeBytes);
      case 'remove':
        return this.#remove(server, change.nqn, change.nsid);
      case 'resize':
        return this.#resize(server, change.nqn, change.nsid, change.sizeBytes);
      case 'ana': {
        const { transport, address, state } = change;
        const port = server.ports.find((one) => one.transport === transport && one.address.text === address);
        if (port === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `no ${transport} port has ${address}`);
        server.setAnaState(port, state);
        return `${transport} at ${address} is ${state}`;
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const disk of this.#disks.values()) await this.#close(disk);
    this.#disks.clear();
  }

  async #open(backend: string, sizeBytes: number | undefined): Promise<BlockDevice> {
    if (!isStreamBackend(backend)) {
      return openBackend(backend, sizeBytes, { onNotice: (notice) => this.#output.note(notice) });
    }
    const opened = await openStreamBackend(backend, {}, this.#output);
    this.#opened.set(opened.disk, opened);
    return opened.disk;
  }

  async #close(disk: BlockDevice): Promise<void> {
    await (this.#opened.get(disk) ?? disk)[Symbol.asyncDispose]();
    this.#opened.delete(disk);
  }

  async #add(server: NvmeTargetServer, { nqn, backend }: DiskOption, sizeBytes: number | undefined): Promise<string> {
    const disk = await this.#open(backend, sizeBytes);
    try {
      const nsid = server.addNamespace(nqn, disk, this.#readOnly);
      this.#disks.set(keyOf(nqn, nsid), disk);
      return `${nqn} has a namespace ${nsid} of ${formatBytes(disk.sizeBytes)}`;
    } catch (error) {
      await this.#close(disk);
      throw error;
    }
  }

  async #remove(server: NvmeTargetServer, nqn: string, nsid: number): Promise<string> {
    await server.removeNamespace(nqn, nsid);
    const key = keyOf(nqn, nsid);
    const disk = this.#disks.get(key);
    this.#disks.delete(key);
    if (disk !== undefined) await this.#close(disk);
    return `${nqn} no longer has namespace ${nsid}`;
  }

  async #resize(server: NvmeTargetServer, nqn: string, nsid: number, sizeBytes: number): Promise<string> {
    const key = keyOf(nqn, nsid);
    const disk = this.#disks.get(key);
    if (disk === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `${nqn} has no namespace ${nsid}`);
    if (!(disk instanceof MemoryDevice)) {
      throw new RoceError('ERR_ROCE_UNSUPPORTED', 'only a disk in memory can grow while it is served');
    }
    const grown = disk.grown(sizeBytes);
    this.#disks.set(key, grown);
    await server.resizeNamespace(nqn, nsid, grown);
    return `namespace ${nsid} of ${nqn} has ${formatBytes(sizeBytes)}`;
  }
}

function keyOf(nqn: string, nsid: number): string {
  return `${nqn} ${nsid}`;
}
