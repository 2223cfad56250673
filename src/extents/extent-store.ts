/** All replicas and fragments of one node, in files of one folder. A write or a sync that fails ends all writing: the store is read-only until the node is started anew. */

import { RoceError } from '../core/errors.js';
import { whyUnwritable } from '../core/file-errors.js';
import { RpcError } from '../rpc/rpc-error.js';
import { FragmentStore, isFragmentFile } from './coding/fragment-store.js';
import { DurableValue } from './durable-value.js';
import type { ExtentFile, ExtentFiles } from './extent-files.js';
import type { NewNode } from './messages.js';
import { Replica, type ReplicaLength } from './replica.js';

const IDENTITY_FILE = 'node';
const SUFFIX = '.extent';

/** Who the disk is, and how often it has been started. */
export interface DiskIdentity extends NewNode {
  /** Starts so far: an old copy of the folder has fewer than the manager has seen. */
  readonly lives: number;
}

/** One replica as the node reports it. */
export interface ReplicaReport {
  /** Number of the extent. */
  readonly extent: number;
  /** Bytes, once sealed. */
  readonly sealed?: number;
}

/** The store of a node. */
export class ExtentStore {
  /** Of the disk. */
  readonly identity: DiskIdentity;
  /** Those of extents that are coded. */
  readonly fragments: FragmentStore;
  readonly #files: ExtentFiles;
  readonly #replicas = new Map<number, Replica>();
  /** Files that are being deleted: another one of the same name waits. */
  readonly #removing = new Map<number, Promise<void>>();
  #readOnly: string | undefined;

  private constructor(files: ExtentFiles, identity: DiskIdentity) {
    this.#files = files;
    this.identity = identity;
    this.fragments = new FragmentStore(files, (work) => this.#writing(work));
  }

  /**
   * Opens a folder, and finds how long each replica is. `introduce` says who the node is if the folder is new. Rejects with ERR_ROCE_MALFORMED if the folder has
   * extents and does not say whose they are, with ERR_ROCE_MISMATCH if it has something else, or files of another version, and as `introduce` does; then it is as it was.
   */
  static async open(files: ExtentFiles, introduce: () => Promise<NewNode>): Promise<ExtentStore> {
    const names = await files.list();
    const foreign = names.find((name) => name !== IDENTITY_FILE && !isData(name));
    if (foreign !== undefined) {
      const hint = 'name an empty folder, or the one that the node had before';
      throw new RoceError('ERR_ROCE_MISMATCH', `the folder is not that of an extent node: it has '${foreign}'`, hint);
    }
    const identity = await nextLife(files, names, introduce);
    const store = new ExtentStore(files, identity);
    for (const name of names) {
      if (name.endsWith(SUFFIX)) await store.#recover(name);
      else if (isFragmentFile(name)) await store.fragments.recover(name);
    }
    return store;
  }

  async #recover(name: string): Promise<void> {
    const file = await this.#files.open(name);
    const replica = await orClosed(file, Replica.recover(file, this.identity.lives));
    if (replica !== undefined && replica.state.isCopying !== true && fileName(replica.extent) === name) {
      this.#replicas.set(replica.extent, replica);
      return;
    }
    await file.close();
    await this.#files.remove(name); // Half a copy, or an extent that was never told to be there.
  }

  /** Why nothing is written any more. Undefined: it is. */
  get readOnly(): string | undefined {
    return this.#readOnly;
  }

  /** Every replica that is complete. */
  reports(): ReplicaReport[] {
    return [...this.#replicas.values()]
      .filter(({ state }) => state.isCopying !== true)
      .map(({ state: { extent, sealed } }) => ({ extent, ...(sealed !== undefined && { sealed }) }));
  }

  /** Bytes of records in all replicas, and of all fragments. */
  usedBytes(): number {
    let sum = this.fragments.usedBytes();
    for (const { length } of this.#replicas.values()) sum += length;
    return sum;
  }

  /** Bytes that can still be written. A folder that does not say so may be gone, with all that is in it: nothing is written any more then. */
  async freeBytes(): Promise<number> {
    try {
      return await this.#files.freeBytes();
    } catch (error) {
      this.#readOnly ??= `its folder cannot be used: ${whyUnwritable(error)}`;
      throw error;
    }
  }

  /** The replica of an extent, or the copy that is being made. Undefined: there is none. */
  held(extent: number): Replica | undefined {
    return this.#replicas.get(extent);
  }

  /** The replica of an extent. Throws MISSING. */
  replica(extent: number): Replica {
    const replica = this.#replicas.get(extent);
    if (replica === undefined || replica.state.isCopying === true)
      throw new RpcError('MISSING', `node ${this.identity.node} has no extent ${extent}`);
    return replica;
  }

  /** Makes an empty replica, or finds the one that is there. */
  async create(extent: number, epoch: number): Promise<void> {
    if (this.#replicas.has(extent)) return this.replica(extent).checkEpoch(epoch);
    await this.#removing.get(extent);
    await this.#writing(async () => {
      const file = await this.#files.create(fileName(extent));
      const state = { extent, epoch, life: this.identity.lives };
      this.#replicas.set(extent, await Replica.create(file, state));
    });
  }

  /** As {@link Replica.append}. Throws READ_ONLY, too. */
  append(extent: number, epoch: number, { offset, record }: { offset: number; record: Buffer }): Promise<void> {
    return this.#writing(() => this.replica(extent).append(epoch, offset, record));
  }

  /** As {@link Replica.fence}. */
  fence(extent: number, epoch: number): Promise<ReplicaLength> {
    return this.#writing(() => this.replica(extent).fence(epoch), true);
  }

  /** As {@link Replica.seal}. */
  seal(extent: number, epoch: number, length: number): Promise<boolean> {
    return this.#writing(async () => (await this.#replicas.get(extent)?.seal(epoch, length)) ?? false, true);
  }

  /** As {@link Replica.restore}. */
  restore(extent: number, offset: number, records: Buffer): Promise<void> {
    return this.#writing(async () => {
      await this.#replicas.get(extent)?.restore(offset, records);
    });
  }

  /** Begins a copy of a sealed extent in place of whatever is there. */
  async beginCopy(extent: number, epoch: number): Promise<void> {
    await this.remove(extent);
    await this.#writing(async () => {
      const file = await this.#files.create(fileName(extent));
      this.#replicas.set(extent, await Replica.create(file, { extent, epoch, isCopying: true }));
    });
  }

  /** Deletes a replica, if there is one. */
  async remove(extent: number): Promise<void> {
    const replica = this.#replicas.get(extent);
    if (replica === undefined) return this.#removing.get(extent);
    this.#replicas.delete(extent);
    const removing = replica
      .close()
      .then(() => this.#files.remove(fileName(extent)))
      .finally(() => this.#removing.delete(extent));
    this.#removing.set(extent, removing);
    await removing;
  }

  /**
   * Does what writes. `isSmall`: a few bytes over old ones, which a full disk still takes. A failed sync is data loss: the system may have dropped what it could
   * not write, and the next sync would succeed.
   */
  async #writing<T>(work: () => Promise<T>, isSmall = false): Promise<T> {
    const isFull = this.#readOnly === FULL;
    if (this.#readOnly !== undefined && !(isSmall && isFull)) throw new RpcError('READ_ONLY', this.#readOnly);
    try {
      return await work();
    } catch (error) {
      if (error instanceof RpcError) throw error;
      this.#readOnly ??=
        (error as NodeJS.ErrnoException).code === 'ENOSPC' ? FULL : `a write failed: ${(error as Error).message}`;
      throw new RpcError('READ_ONLY', this.#readOnly);
    }
  }

  /** Releases all files. */
  async close(): Promise<void> {
    this.#readOnly = 'the node is closed';
    await Promise.all([...this.#replicas.values()].map((replica) => replica.close()));
    await this.fragments.close();
  }
}

function isData(name: string): boolean {
  return name.endsWith(SUFFIX) || isFragmentFile(name);
}

/** Reads who the disk is, or asks, and notes another start of it. */
async function nextLife(
  files: ExtentFiles,
  names: readonly string[],
  introduce: () => Promise<NewNode>,
): Promise<DiskIdentity> {
  const old = names.includes(IDENTITY_FILE) ? await files.open(IDENTITY_FILE) : undefined;
  const value = old && (await orClosed(old, DurableValue.load<DiskIdentity>(old))).value;
  if (value === undefined && names.some(isData)) {
    await old?.close();
    const hint = 'empty it, and the cluster fills it again';
    throw new RoceError('ERR_ROCE_MALFORMED', 'the folder has extents, and does not say of which node', hint);
  }
  const identity = { ...(value ?? (await introduce())), lives: (value?.lives ?? 0) + 1 };
  const file = old ?? (await files.create(IDENTITY_FILE));
  await (await DurableValue.load<DiskIdentity>(file)).store(identity);
  await file.close();
  return identity;
}

/** What is read of a file, which is closed if that fails. */
async function orClosed<T>(file: ExtentFile, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    await file.close();
    throw error;
  }
}

const FULL = 'the disk is full';

function fileName(extent: number): string {
  return `${extent}${SUFFIX}`;
}
