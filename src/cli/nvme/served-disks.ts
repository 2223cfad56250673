/** The disks of a target that runs: opened for it, changed while it serves them, closed at its end. */

import { RoceError } from '../../core/errors.js';
import { formatBytes } from '../../core/units.js';
import type { BlockDevice } from '../../storage-rpc/disk/block-device.js';
import { MemoryDevice } from '../../storage-rpc/disk/memory-device.js';
import type { NvmeTargetServer } from '../../storage-rpc/live/nvme-target-server.js';
import { openBackend } from '../../storage-rpc/open-backend.js';
import type { TargetChange } from './changes.js';
import type { DiskOption } from './disk-option.js';

/** Disks by subsystem and namespace ID. */
export class ServedDisks implements AsyncDisposable {
  readonly #disks = new Map<string, BlockDevice>();
  readonly #readOnly: boolean;

  /** Hosts cannot write disks that are added to a read-only target. */
  constructor(readOnly: boolean) {
    this.#readOnly = readOnly;
  }

  /** Opens the disks of the command line, in their order; gives those of each subsystem. Rejects as `openBackend` does. */
  async open(options: readonly DiskOption[], sizeBytes: number | undefined): Promise<Map<string, BlockDevice[]>> {
    const subsystems = new Map<string, BlockDevice[]>();
    for (const { nqn, backend } of options) {
      const disk = await openBackend(backend, backend.startsWith('nbd') ? undefined : sizeBytes);
      const disks = [...(subsystems.get(nqn) ?? []), disk];
      subsystems.set(nqn, disks);
      this.#disks.set(keyOf(nqn, disks.length), disk);
    }
    return subsystems;
  }

  /** Makes a change; resolves with what was done, in words. Rejects with ERR_ROCE_NOT_FOUND, ERR_ROCE_UNSUPPORTED or as `openBackend` does; then nothing has changed. */
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

  /** Closes all disks. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const disk of this.#disks.values()) await disk.close();
    this.#disks.clear();
  }

  async #add(server: NvmeTargetServer, { nqn, backend }: DiskOption, sizeBytes: number | undefined): Promise<string> {
    const disk = await openBackend(backend, sizeBytes);
    try {
      const nsid = server.addNamespace(nqn, disk, this.#readOnly);
      this.#disks.set(keyOf(nqn, nsid), disk);
      return `${nqn} has a namespace ${nsid} of ${formatBytes(disk.sizeBytes)}`;
    } catch (error) {
      await disk.close();
      throw error;
    }
  }

  async #remove(server: NvmeTargetServer, nqn: string, nsid: number): Promise<string> {
    await server.removeNamespace(nqn, nsid);
    const key = keyOf(nqn, nsid);
    const disk = this.#disks.get(key);
    this.#disks.delete(key);
    await disk?.close();
    return `${nqn} has no namespace ${nsid} any more`;
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
