/**
 * All replicas and fragments of one node. A write or sync that fails makes the store read-only until the node restarts.
 */

import { RpcError } from '@rocev2/rpc';
import { RoceError, whyUnwritable } from 'rocev2/internal/core';
import { FragmentStore, isFragmentFile } from './coding/fragment-store.js';
import { DurableValue } from './durable-value.js';
import type { ExtentFile, ExtentFiles } from './extent-files.js';
import { Journal, type JournalDevice, type JournalUse, missingJournal } from './journal.js';
import { JournaledFiles } from './journaled-files.js';
import { KeyedMutex } from './keyed-mutex.js';
import type { NewNode, NodeInventory, ReplicaReport } from './messages.js';
import type { MetadataVersion } from './metadata-history.js';
import type { ExtentOrigin } from './metadata-schema.js';
import { isQuarantined, Quarantine } from './quarantine.js';
import { Replica, type ReplicaLength, type ReplicaState } from './replica.js';

const IDENTITY_FILE = 'node';
const SUFFIX = '.extent';

export interface NodeIdentity extends NewNode {
  /** Starts so far: an old copy of the folder has fewer than the manager has seen. */
  readonly lives: number;
  /** Random, of the last start or checkpoint, and the one before that a manager had noted. */
  readonly mark?: string;
  readonly before?: string;
  /** The mark of the journal without which the folder is not whole. Of an earlier version: the start that began it. */
  readonly journal?: string | number;
  /** The mark that the journal is about to get. */
  readonly nextJournal?: string;
  /** The last state of the metadata that a manager has shown. */
  readonly seen?: MetadataVersion;
}

export class ExtentStore {
  readonly fragments: FragmentStore;
  readonly quarantine: Quarantine;
  readonly #identity: OpenIdentity;
  readonly #files: ExtentFiles;
  readonly #journal: Journal | undefined;
  readonly #replicaFiles: ExtentFiles;
  readonly #replicas = new Map<number, Replica>();
  /** A file is made, and deleted, by one request at a time. */
  readonly #mutexes = new KeyedMutex<number>();
  #readOnly: string | undefined;
  #changes = 0;

  private constructor(files: ExtentFiles, identity: OpenIdentity, journal: Journal | undefined) {
    this.#files = files;
    this.#journal = journal;
    this.#replicaFiles = journal === undefined ? files : new JournaledFiles(files, journal);
    this.#identity = identity;
    this.quarantine = new Quarantine(files);
    this.fragments = new FragmentStore(files, this.quarantine, (work) => this.#writing(work));
  }

  /**
   * Opens a folder, and finds how long each replica is. Rejects with ERR_ROCE_MALFORMED if the folder has extents and
   * does not say whose they are, with ERR_ROCE_MISMATCH if it has something else, or files of another version, or the
   * journal is not the one that it had, and as `registerNode` does; then it is as it was. `trustsFolder`: the operator
   * says that the folder may be used without the journal that it had.
   */
  static async open(
    files: ExtentFiles,
    registerNode: () => Promise<NewNode>,
    device?: JournalDevice,
    trustsFolder = false,
  ): Promise<ExtentStore> {
    const names = await files.list();
    const foreign = names.find((name) => name !== IDENTITY_FILE && !isData(name));
    if (foreign !== undefined) {
      const hint = 'name an empty folder, or the one that the node had before';
      throw new RoceError('ERR_ROCE_MISMATCH', `the folder is not that of an extent node: it has '${foreign}'`, hint);
    }
    const { identity, journal } = await nextBoot({ files, names, registerNode, device, trustsFolder });
    const store = new ExtentStore(files, identity, journal);
    for (const name of names) {
      if (isQuarantined(name)) await store.quarantine.recover(name);
      else if (name.endsWith(SUFFIX)) await store.#recover(name);
      else if (isFragmentFile(name)) await store.fragments.recover(name);
    }
    return store;
  }

  /** Of the node whose folder it is; undefined: it has none yet. */
  static async identityIn(files: ExtentFiles): Promise<NodeIdentity | undefined> {
    if (!(await files.list()).includes(IDENTITY_FILE)) return undefined;
    const { file, value } = await openIdentity(files.open(IDENTITY_FILE));
    await file.close();
    return value.value;
  }

  get identity(): NodeIdentity {
    return this.#identity.value.value!;
  }

  async #recover(name: string): Promise<void> {
    const file = await this.#replicaFiles.open(name);
    const replica = await orClosed(file, Replica.recover(file, this.identity.lives));
    if (replica !== undefined && replica.state.isCopying !== true && fileName(replica.extent) === name) {
      this.#replicas.set(replica.extent, replica);
      return;
    }
    await file.close();
    await this.#replicaFiles.remove(name); // A partial copy, or an extent that was never reported.
  }

  get readOnly(): string | undefined {
    const failure = this.#journal?.failure;
    if (failure !== undefined) this.#readOnly ??= `a write failed: ${failure.message}`;
    return this.#readOnly;
  }

  /** Changes of replicas and fragments since the start. */
  get changes(): number {
    return this.#changes;
  }

  get journal(): JournalUse | undefined {
    return this.#journal?.use;
  }

  reports(): ReplicaReport[] {
    return [...this.#replicas.values()]
      .filter(({ state }) => state.isCopying !== true)
      .map(({ state: { extent, sealed }, isStopped }) => ({
        extent,
        ...(sealed !== undefined && { sealed }),
        ...(isStopped && { isStopped }),
      }));
  }

  inventory(): NodeInventory {
    const replicas = this.reports().map((report) => {
      const { epoch, of } = this.replica(report.extent).state;
      return { ...report, epoch, ...(of !== undefined && { of }) };
    });
    return { replicas, fragments: this.fragments.complete() };
  }

  usedBytes(): number {
    let sum = this.fragments.usedBytes();
    for (const { length } of this.#replicas.values()) sum += length;
    return sum;
  }

  /** If it cannot be read, the folder and its content may be gone: then nothing more is written. */
  async freeBytes(): Promise<number> {
    try {
      return await this.#files.freeBytes();
    } catch (error) {
      this.#readOnly ??= `its folder cannot be used: ${whyUnwritable(error)}`;
      throw error;
    }
  }

  /** Permanently deletes files that have been in quarantine for this long, or for which there is no space. */
  async releaseDeleted(nowNs: number, keepNs: number): Promise<void> {
    if (this.readOnly === undefined || this.readOnly === FULL)
      await this.quarantine.release(nowNs, keepNs, await this.freeBytes());
  }

  held(extent: number): Replica | undefined {
    return this.#replicas.get(extent);
  }

  replica(extent: number): Replica {
    const replica = this.#replicas.get(extent);
    if (replica === undefined || replica.state.isCopying === true)
      throw new RpcError('MISSING', `node ${this.identity.node} has no extent ${extent}`);
    return replica;
  }

  create(extent: number, epoch: number, of?: ExtentOrigin): Promise<void> {
    return this.#mutexes.run(extent, async () => {
      if (this.#replicas.has(extent)) return this.replica(extent).checkEpoch(epoch);
      await this.#make({ extent, epoch, life: this.identity.lives, of });
    });
  }

  #make(state: ReplicaState): Promise<void> {
    return this.#writing(async () => {
      const file = await this.#replicaFiles.create(fileName(state.extent));
      this.#replicas.set(state.extent, await Replica.create(file, state));
    });
  }

  append(extent: number, epoch: number, { offset, record }: { offset: number; record: Buffer }): Promise<void> {
    return this.#writing(() => this.replica(extent).append(epoch, offset, record));
  }

  fence(extent: number, epoch: number): Promise<ReplicaLength> {
    return this.#writing(() => this.replica(extent).fence(epoch), true);
  }

  seal(extent: number, epoch: number, length: number): Promise<boolean> {
    return this.#writing(async () => (await this.#replicas.get(extent)?.seal(epoch, length)) ?? false, true);
  }

  restore(extent: number, offset: number, records: Buffer): Promise<void> {
    return this.#writing(async () => {
      await this.#replicas.get(extent)?.restore(offset, records);
    });
  }

  beginCopy(extent: number, epoch: number, of?: ExtentOrigin): Promise<void> {
    return this.#mutexes.run(extent, async () => {
      await this.#remove(extent);
      await this.#make({ extent, epoch, isCopying: true, of });
    });
  }

  remove(extent: number): Promise<void> {
    return this.#mutexes.run(extent, () => this.#remove(extent));
  }

  /** Permanently deletes a replica: its extent is complete without it. */
  removeSpare(extent: number): Promise<void> {
    return this.#mutexes.run(extent, () => this.#remove(extent, true));
  }

  /** Extents of a stream whose files are in quarantine. */
  async deletedOf(stream: string): Promise<number[]> {
    const states = await Promise.all(this.quarantine.names.map((name) => this.quarantine.state(name)));
    return [...new Set(states.flatMap((state) => (state?.of?.stream === stream ? state.extent : [])))];
  }

  /** Takes the files of extents out of quarantine. */
  async undelete(extents: ReadonlySet<number>): Promise<void> {
    for (const name of this.quarantine.names) {
      const extent = (await this.quarantine.state(name))?.extent;
      if (extent === undefined || !extents.has(extent)) continue;
      await this.#mutexes.run(extent, async () => {
        if (name.endsWith(SUFFIX) && this.#replicas.has(extent)) return;
        await this.#writing(() => this.quarantine.restore(name), true);
        if (isFragmentFile(name)) await this.fragments.recover(name);
        else await this.#recover(name);
      });
    }
  }

  async #remove(extent: number, isSpare = false): Promise<void> {
    const replica = this.#replicas.get(extent);
    if (replica === undefined) return;
    this.#replicas.delete(extent);
    await replica.close();
    const name = fileName(extent);
    if (isSpare || replica.state.isCopying === true) await this.#replicaFiles.remove(name);
    else await this.quarantine.take(name, replica.length);
  }

  /**
   * `isSmall`: overwrites a few bytes, which a full disk still permits. A failed sync is data loss: the system may have
   * dropped dirty pages, and the next sync would succeed.
   */
  async #writing<T>(work: () => Promise<T>, isSmall = false): Promise<T> {
    const { readOnly } = this;
    if (readOnly !== undefined && !(isSmall && readOnly === FULL)) throw new RpcError('READ_ONLY', readOnly);
    this.#changes++;
    try {
      return await work();
    } catch (error) {
      if (error instanceof RpcError) throw error;
      this.#readOnly ??=
        (error as NodeJS.ErrnoException).code === 'ENOSPC' ? FULL : `a write failed: ${(error as Error).message}`;
      throw new RpcError('READ_ONLY', this.#readOnly);
    }
  }

  /** Throws OUTDATED if an earlier manager has shown a later state. */
  noteVersion(seen: MetadataVersion): Promise<void> {
    return this.#noting(async () => {
      const last = this.identity.seen;
      if (last !== undefined && seen.number < last.number)
        throw new RpcError(
          'OUTDATED',
          `node ${this.identity.node} has seen transaction ${last.number} of the metadata, and the manager is at ${seen.number}`,
        );
      await this.#identity.value.update((own) => (isSame(own!.seen, seen) ? own! : { ...own!, seen }));
    });
  }

  /** `before`: the last mark that a manager has noted. */
  setMark(mark: string, before: string | undefined): Promise<void> {
    return this.#noting(() =>
      this.#identity.value.update((own) => {
        const { before: _, ...rest } = own!;
        return { ...rest, mark, ...(before !== undefined && { before }) };
      }),
    );
  }

  /** Changes the identity, which is not a change of the content. */
  #noting(work: () => Promise<void>): Promise<void> {
    const changes = this.#changes;
    const noted = this.#writing(work, true);
    this.#changes = changes;
    return noted;
  }

  /** A manager refuses the folder: nothing is written any more. */
  refuse(reason: string): void {
    this.#readOnly ??= reason;
  }

  /**
   * The manager has refused the folder: this start does not count. Otherwise an old copy that is tried again and again
   * would have as many starts as the manager has seen. With a journal it counts, because the journal was begun in it.
   */
  async uncountStart(): Promise<void> {
    if (this.#journal !== undefined) return;
    await this.#identity.value.update((own) => ({ ...own!, lives: own!.lives - 1 }));
  }

  async close(): Promise<void> {
    this.#readOnly = 'the node is closed';
    await Promise.all([...this.#replicas.values()].map((replica) => replica.close()));
    await this.fragments.close();
    const isJournalEmpty = await this.#journal?.close();
    if (isJournalEmpty === true)
      await this.#identity.value.update((own) => {
        const { journal: _, nextJournal: __, ...rest } = own!;
        return rest;
      });
    await this.#identity.file.close();
  }
}

interface OpenIdentity {
  readonly file: ExtentFile;
  readonly value: DurableValue<NodeIdentity>;
}

function isSame(a: MetadataVersion | undefined, b: MetadataVersion): boolean {
  return a?.branch === b.branch && a.number === b.number;
}

function isData(name: string): boolean {
  return name.endsWith(SUFFIX) || isFragmentFile(name) || isQuarantined(name);
}

/**
 * With a journal replicas are as they were when the last start ended, and the folder says from then on that it needs
 * the journal.
 */
async function nextBoot({
  files,
  names,
  registerNode,
  device,
  trustsFolder,
}: {
  readonly files: ExtentFiles;
  readonly names: readonly string[];
  readonly registerNode: () => Promise<NewNode>;
  readonly device: JournalDevice | undefined;
  readonly trustsFolder: boolean;
}): Promise<{ readonly identity: OpenIdentity; readonly journal: Journal | undefined }> {
  const there = names.includes(IDENTITY_FILE) ? await openIdentity(files.open(IDENTITY_FILE)) : undefined;
  const last = there?.value.value;
  let identity = there;
  try {
    if (last === undefined && names.some(isData)) {
      const hint = 'empty it, and the cluster fills it again';
      throw new RoceError('ERR_ROCE_MALFORMED', 'the folder has extents, and does not say of which node', hint);
    }
    const own = { ...(last ?? (await registerNode())), lives: (last?.lives ?? 0) + 1 };
    const { cluster, node, lives: life } = own;
    const needed = { used: last?.journal, next: last?.nextJournal, isTrusted: trustsFolder };
    if (device === undefined && needed.used !== undefined && !trustsFolder) throw missingJournal(node);
    const journal = device && (await Journal.open(device, { cluster, node, life, ...needed }));
    identity ??= await openIdentity(files.create(IDENTITY_FILE));
    const { value } = identity;
    await value.store(own);
    if (device === undefined && trustsFolder)
      await value.update((present) => {
        const { journal: _, nextJournal: __, ...rest } = present!;
        return rest;
      });
    await journal?.begin(files, {
      prepare: (nextJournal) => value.update((present) => ({ ...present!, nextJournal })),
      settle: (mark) =>
        value.update((present) => {
          const { nextJournal: _, ...rest } = present!;
          return { ...rest, journal: mark };
        }),
    });
    return { identity, journal };
  } catch (error) {
    await identity?.file.close();
    throw error;
  }
}

async function openIdentity(opening: Promise<ExtentFile>): Promise<OpenIdentity> {
  const file = await opening;
  return { file, value: await orClosed(file, DurableValue.load<NodeIdentity>(file)) };
}

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
