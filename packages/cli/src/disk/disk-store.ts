import { open, rename } from 'node:fs/promises';
import type { Output, SecureFlags } from '@rocev2/command';
import { type OwnDisk, openOwnDisk } from '@rocev2/nvme/internal';
import { PromiseMutex, RoceError, whyUnwritable } from 'rocev2/internal/core';
import type { NamedDisk, StorageServer } from 'rocev2/internal/storage-rpc';
import { advertisedAddress, checkPlace, type PlaceFlags } from './advertise.js';
import { checkNames, type DiskEntry, diskFileText } from './disk-entries.js';
import { limitsOf } from './limit-options.js';
import { type DiskTelemetry, diskTelemetry } from './telemetry.js';

interface OpenDisk {
  entry: DiskEntry;
  own: OwnDisk;
  telemetry: DiskTelemetry;
  socket: AsyncDisposable | undefined;
}

export interface DiskStoreOptions {
  readonly configPath: string | undefined;
  readonly host: string;
  readonly keys: SecureFlags;
  readonly estats: boolean;
  readonly place: PlaceFlags;
}

/** A disk as `rocev2 disk ls` shows it. */
export interface ListedDisk {
  /** Clients ask for it by this name. */
  readonly name: string;
  /** Where the data is. */
  readonly store: string;
  /** What it holds, in bytes. Clients that are connected may still know less. */
  readonly sizeBytes: number;
  /** Clients can only read. */
  readonly readOnly: boolean;
  /** Null where the disk has none. */
  readonly uuid: string | null;
  /** Clients that may write now, by their own labels. */
  readonly writers: readonly string[];
}

export class DiskStore implements AsyncDisposable {
  readonly #disks = new Map<string, OpenDisk>();
  readonly #output: Output;
  readonly #options: DiskStoreOptions;
  readonly #changes = new PromiseMutex();

  private constructor(output: Output, options: DiskStoreOptions) {
    this.#output = output;
    this.#options = options;
  }

  static async open(entries: readonly DiskEntry[], output: Output, options: DiskStoreOptions): Promise<DiskStore> {
    checkNames(entries);
    checkPlace(
      options.place,
      entries.map(({ backend }) => backend),
    );
    const store = new DiskStore(output, options);
    try {
      for (const entry of entries) await store.#open(entry);
    } catch (error) {
      await store[Symbol.asyncDispose]();
      throw error;
    }
    return store;
  }

  get named(): NamedDisk[] {
    return [...this.#disks.values()].map(namedDisk);
  }

  async watch(server: StorageServer): Promise<void> {
    for (const disk of this.#disks.values()) await this.#watch(disk, server);
  }

  get description(): string {
    return this.#disks.size === 0 ? 'no disk yet' : [...this.#disks.keys()].join(', ');
  }

  list(server: StorageServer): ListedDisk[] {
    return server.namedDisks.map(({ name, device, readOnly, writers }) => ({
      name,
      store: this.#disks.get(name)!.entry.backend,
      sizeBytes: device.sizeBytes,
      readOnly,
      uuid: device.identity?.uuid ?? null,
      writers: writers.map(({ label }) => label),
    }));
  }

  create(server: StorageServer, entry: DiskEntry): Promise<void> {
    return this.#changes.run(async () => {
      checkNames([entry, ...[...this.#disks.values()].map((disk) => disk.entry)]);
      const disk = await this.#open(entry);
      try {
        await this.#watch(disk, server);
      } catch (error) {
        this.#disks.delete(entry.name);
        await close(disk);
        throw error;
      }
      server.addDisk(namedDisk(disk));
      this.#output.note(`the disk '${entry.name}' is served now: ${entry.backend}`);
      await this.#save();
    });
  }

  resize(server: StorageServer, name: string, sizeBytes: number): Promise<void> {
    return this.#changes.run(async () => {
      const disk = this.#get(name);
      const { entry } = disk;
      if (!entry.backend.startsWith('file:')) {
        throw new RoceError('ERR_ROCE_UNSUPPORTED', `'${name}' is not in a file`, 'only a disk in a file can grow');
      }
      const before = disk.own.device.sizeBytes;
      if (sizeBytes < before) {
        throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `'${name}' has ${before} bytes`, 'a disk can only grow');
      }
      let failure: unknown;
      await server.exchangeDisk(name, async () => {
        await close(disk);
        try {
          disk.own = await this.#openOwn({ ...entry, size: sizeBytes }, true);
          disk.entry = { ...entry, size: sizeBytes };
        } catch (error) {
          failure = error;
          disk.own = await this.#openOwn({ ...entry, size: before }, false);
        }
        disk.telemetry = diskTelemetry(disk.own.device, this.#options.estats);
        return disk.telemetry.disk;
      });
      await this.#watch(disk, server);
      if (failure !== undefined) throw failure;
      this.#output.note(`the disk '${name}' has ${sizeBytes} bytes now`);
      await this.#save();
    });
  }

  remove(server: StorageServer, name: string, force: boolean): Promise<void> {
    return this.#changes.run(async () => {
      const disk = this.#get(name);
      const { entry } = disk;
      await server.removeDisk(name, { force });
      this.#disks.delete(name);
      await close(disk);
      const data = entry.backend === 'memory' ? 'its data is gone' : `its data is still in ${entry.backend}`;
      this.#output.note(`the disk '${name}' is no longer served; ${data}`);
      await this.#save();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#changes.settled;
    for (const disk of this.#disks.values()) await close(disk);
    this.#disks.clear();
  }

  #get(name: string): OpenDisk {
    const disk = this.#disks.get(name);
    if (disk !== undefined) return disk;
    throw new RoceError('ERR_ROCE_NOT_FOUND', `there is no disk '${name}'`, `there are: ${this.description}`);
  }

  async #open(entry: DiskEntry): Promise<OpenDisk> {
    const own = await this.#openOwn(entry, false);
    const { create: _, ...lasting } = entry;
    const telemetry = diskTelemetry(own.device, this.#options.estats);
    const disk: OpenDisk = { entry: lasting, own, telemetry, socket: undefined };
    this.#disks.set(entry.name, disk);
    return disk;
  }

  async #watch(disk: OpenDisk, server: StorageServer): Promise<void> {
    const { name, backend } = disk.entry;
    await disk.own.standing?.serveAt({
      address: advertisedAddress(this.#options.place, server.port),
      onOwnedAgain: () => server.renewDisk(disk.telemetry.disk),
    });
    disk.socket = await disk.telemetry.serve(() => ({
      role: 'server',
      address: `${this.#options.host}/${name}`,
      store: backend,
      nbdClients: 0,
      connections: server.namedDisks.find((served) => served.name === name)?.transports ?? { rdma: 0, tcp: 0 },
      crcMismatches: server.counters.crcMismatches,
      wrongDisks: server.counters.wrongDisks,
      file: disk.own.facts(),
      path: null,
    }));
  }

  #openOwn(
    { name, backend, readOnly: _, iops: __, bandwidth: ___, ...flags }: DiskEntry,
    grow: boolean,
  ): Promise<OwnDisk> {
    const isFile = backend.startsWith('file:');
    return openOwnDisk(
      backend,
      { ...this.#options.keys, ...flags, ...(isFile && { name }), ...(grow && { grow }) },
      this.#output,
      { stands: true },
    );
  }

  async #save(): Promise<void> {
    const { configPath } = this.#options;
    if (configPath === undefined) return;
    const entries = [...this.#disks.values()].map(({ entry }) => entry);
    const newPath = `${configPath}.new`;
    try {
      const file = await open(newPath, 'w');
      try {
        await file.writeFile(diskFileText(entries));
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(newPath, configPath);
    } catch (cause) {
      const why = whyUnwritable(cause as NodeJS.ErrnoException);
      throw new RoceError('ERR_ROCE_IO', `done, but not kept in ${configPath}: ${why}`, undefined, { cause });
    }
  }
}

async function close({ own, socket }: OpenDisk): Promise<void> {
  await socket?.[Symbol.asyncDispose]();
  await own[Symbol.asyncDispose]();
}

function namedDisk({ entry, telemetry }: OpenDisk): NamedDisk {
  const { name, readOnly, iops, bandwidth } = entry;
  const device = telemetry.disk;
  const { limit } = limitsOf({ ...(iops !== undefined && { iops }), ...(bandwidth !== undefined && { bandwidth }) });
  return { name, device, ...(readOnly !== undefined && { readOnly }), ...(limit !== undefined && { limit }) };
}
