/**
 * Metadata in files: a log of transactions, each durable before it is acknowledged, after a snapshot. A file
 * `NUMBER.metadata` is one generation; its frames are, little-endian: magic 4, generation 4, length 4, crc 4, JSON.
 * `crc` is the CRC-32C of the twelve bytes before it and the JSON. A log that has grown is followed by the next
 * generation, which counts once its snapshot is whole; then the old file is deleted, so no rename is needed. A crash
 * can tear only the last frame, because the next one is not written before it is durable: a broken frame before an
 * intact one is damage, not the end of the log.
 */

import { type Clock, crc32c, PromiseMutex, RoceError, whyUnwritable } from 'rocev2/internal/core';
import type { ExtentFile, ExtentFiles } from './extent-files.js';
import { otherMark, otherVersion } from './format-mark.js';
import type { Metadata, MetadataEntry, Transaction } from './metadata.js';
import { type MetadataChange, MetadataTable } from './metadata-table.js';

const MARK = 'SvMD';
const MAGIC = Buffer.from(MARK);
const HEAD_BYTES = 16;
const SUFFIX = '.metadata';
/** A log is not compacted before it has this many bytes. */
const COMPACT_BYTES = 1 << 20;

interface Snapshot {
  readonly version: number;
  readonly entries: ReturnType<MetadataTable['puts']>;
}

interface Content {
  readonly snapshot: Snapshot | undefined;
  readonly changes: readonly MetadataChange[];
  readonly snapshotBytes: number;
  /** Bytes of intact frames. */
  readonly end: number;
}

export class LogMetadata implements Metadata {
  readonly #files: ExtentFiles;
  readonly #compactBytes: number;
  readonly #table: MetadataTable;
  #file!: ExtentFile;
  #generation = 0;
  #snapshotBytes = 0;
  #end = 0;
  #failure: Error | undefined;
  readonly #mutex = new PromiseMutex();

  private constructor(files: ExtentFiles, clock: Clock, compactBytes: number) {
    this.#files = files;
    this.#compactBytes = compactBytes;
    this.#table = new MetadataTable(clock, (key, version) => {
      this.#exclusive(() => this.#expire(key, version)).catch(() => {});
    });
  }

  /**
   * Times to live restart: it is unknown how long the store was closed. Rejects with ERR_ROCE_MALFORMED for a damaged
   * store, ERR_ROCE_MISMATCH for a folder that has something else, or files of another version, and as the files do.
   * `compactBytes`: bytes of transactions after which a new generation begins, at least as many as its snapshot has;
   * default 1 MiB.
   */
  static async open(
    files: ExtentFiles,
    clock: Clock,
    { compactBytes = COMPACT_BYTES }: { readonly compactBytes?: number } = {},
  ): Promise<LogMetadata> {
    const store = new LogMetadata(files, clock, compactBytes);
    await store.#recover();
    return store;
  }

  async #recover(): Promise<void> {
    const names = await this.#files.list();
    const foreign = names.find((name) => generationOf(name) === undefined);
    if (foreign !== undefined) {
      const hint = 'name an empty folder, or the one that the manager had before';
      throw new RoceError('ERR_ROCE_MISMATCH', `the folder is not that of a manager: it has '${foreign}'`, hint);
    }
    const generations = names.map((name) => generationOf(name)!).sort((a, b) => b - a);
    for (const generation of generations) if (await this.#load(generation)) break;
    // The power failed before the snapshot of a file was whole: then the file before it counts.
    const oldest = generations.at(-1) ?? 1;
    if (this.#generation === 0 && oldest > 1) throw damaged(oldest, 0);
    const others = generations.filter((generation) => generation !== this.#generation);
    for (const generation of others) await this.#files.remove(fileName(generation));
    if (this.#generation === 0) await this.#begin(1);
  }

  async #load(generation: number): Promise<boolean> {
    const file = await this.#files.open(fileName(generation));
    const { snapshot, changes, snapshotBytes, end } = await readFrames(file, generation);
    if (snapshot === undefined) {
      await file.close();
      return false;
    }
    if ((await file.size()) > end) {
      await file.truncate(end);
      await file.sync();
    }
    this.#file = file;
    this.#generation = generation;
    this.#snapshotBytes = snapshotBytes;
    this.#end = end;
    for (const { version, ...put } of snapshot.entries) this.#table.apply({ version, put: [put], remove: [] });
    this.#table.apply({ version: snapshot.version, put: [], remove: [] });
    for (const change of changes) this.#table.apply(change);
    return true;
  }

  async get(key: string): Promise<MetadataEntry | undefined> {
    this.#check();
    return this.#table.get(key);
  }

  async list(prefix: string): Promise<readonly MetadataEntry[]> {
    this.#check();
    return this.#table.list(prefix);
  }

  commit({ compare, put = [], remove = [] }: Transaction): Promise<number> {
    return this.#exclusive(async () => {
      if (!this.#table.holds(compare)) return 0;
      const version = this.#table.version + 1;
      await this.#log({ version, put, remove });
      return version;
    });
  }

  renew(key: string, version: number, ttlMs: number): Promise<boolean> {
    return this.#exclusive(async () => this.#table.renew(key, version, ttlMs));
  }

  watch(prefix: string, onChange: (key: string) => void): () => void {
    return this.#table.watch(prefix, onChange);
  }

  async close(): Promise<void> {
    this.#table.close();
    await this.#mutex.settled;
    this.#failure ??= new RoceError('ERR_ROCE_CLOSED', 'the metadata is closed');
    await this.#file.close();
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  #exclusive<T>(work: () => Promise<T>): Promise<T> {
    return this.#mutex.run(() => {
      this.#check();
      return work();
    });
  }

  async #expire(key: string, version: number): Promise<void> {
    if (!this.#table.isDue(key, version)) return;
    await this.#log({ version: this.#table.version + 1, put: [], remove: [key] });
  }

  /** After a failure the state of the disk is unknown, and no request is answered. */
  async #log(change: MetadataChange): Promise<void> {
    const frame = frameOf(this.#generation, change);
    try {
      await this.#file.write(this.#end, frame);
      await this.#file.sync();
      this.#end += frame.length;
      this.#table.apply(change);
      if (this.#end - this.#snapshotBytes > Math.max(this.#compactBytes, this.#snapshotBytes)) await this.#compact();
    } catch (cause) {
      const why = whyUnwritable(cause);
      const hint = 'repair the disk, then restart the manager';
      this.#failure ??= new RoceError('ERR_ROCE_IO', `the metadata cannot be written: ${why}`, hint, { cause });
      throw this.#failure;
    }
  }

  async #compact(): Promise<void> {
    const old = { file: this.#file, generation: this.#generation };
    await this.#begin(old.generation + 1);
    await old.file.close();
    await this.#files.remove(fileName(old.generation));
  }

  async #begin(generation: number): Promise<void> {
    const file = await this.#files.create(fileName(generation));
    const snapshot: Snapshot = { version: this.#table.version, entries: this.#table.puts() };
    const frame = frameOf(generation, snapshot);
    await file.write(0, frame);
    await file.sync();
    this.#file = file;
    this.#generation = generation;
    this.#snapshotBytes = frame.length;
    this.#end = frame.length;
  }
}

function fileName(generation: number): string {
  return `${generation}${SUFFIX}`;
}

function generationOf(name: string): number | undefined {
  const [, digits] = /^([1-9]\d{0,8})\.metadata$/.exec(name) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

function damaged(generation: number, at: number): RoceError {
  const hint = 'restore the folder from a copy; a manager that continued would lose acknowledged changes';
  return new RoceError('ERR_ROCE_MALFORMED', `${fileName(generation)} is damaged at byte ${at}`, hint);
}

function frameOf(generation: number, value: Snapshot | MetadataChange): Buffer {
  const text = Buffer.from(JSON.stringify(value));
  const head = Buffer.alloc(HEAD_BYTES);
  MAGIC.copy(head);
  head.writeUInt32LE(generation, 4);
  head.writeUInt32LE(text.length, 8);
  head.writeUInt32LE(crc32c(text, crc32c(head.subarray(0, 12))), 12);
  return Buffer.concat([head, text]);
}

function frameAt(bytes: Buffer, generation: number, at: number): Buffer | undefined {
  const head = bytes.subarray(at, at + HEAD_BYTES);
  if (head.length < HEAD_BYTES || !head.subarray(0, 4).equals(MAGIC) || head.readUInt32LE(4) !== generation)
    return undefined;
  const text = bytes.subarray(at + HEAD_BYTES, at + HEAD_BYTES + head.readUInt32LE(8));
  if (text.length < head.readUInt32LE(8)) return undefined;
  return crc32c(text, crc32c(head.subarray(0, 12))) === head.readUInt32LE(12) ? text : undefined;
}

async function readFrames(file: ExtentFile, generation: number): Promise<Content> {
  const bytes = await file.read(0, await file.size());
  const values: unknown[] = [];
  const ends = [0];
  for (let text = frameAt(bytes, generation, 0); text !== undefined; text = frameAt(bytes, generation, ends.at(-1)!)) {
    values.push(JSON.parse(text.toString()));
    ends.push(ends.at(-1)! + HEAD_BYTES + text.length);
  }
  const end = ends.at(-1)!;
  for (let at = bytes.indexOf(MAGIC, end + 1); at !== -1; at = bytes.indexOf(MAGIC, at + 1))
    if (frameAt(bytes, generation, at) !== undefined) throw damaged(generation, end);
  const mark = otherMark(bytes, MARK);
  if (mark !== undefined) throw otherVersion(fileName(generation), mark);
  const [snapshot, ...changes] = values as [Snapshot | undefined, ...MetadataChange[]];
  return { snapshot, changes, snapshotBytes: ends[1] ?? 0, end };
}
