/**
 * An extent in a file of one node. Records are appended until the replica is fenced; what was answered is durable, as
 * is everything before it. A replica that was open when its node went down takes no more appends, because acknowledged
 * data may have been in its memory only.
 */

import { RpcError } from '@rocev2/rpc';
import { invariant } from 'rocev2/internal/core';
import { GroupCommit } from 'rocev2/internal/disk';
import { DurableValue, SLOTS_BYTES } from './durable-value.js';
import type { ExtentFile } from './extent-files.js';
import type { ExtentOrigin } from './metadata-schema.js';
import {
  areBlocksIntact,
  BLOCK_BYTES,
  blocksOf,
  checkRecord,
  crcsIn,
  dataAt,
  HEADER_BYTES,
  headBytesIn,
  intactRecordsIn,
  RECORD_ALIGN,
  type RecordHead,
  readHead,
  readRecords,
  recordBytes,
} from './record.js';

export interface ReplicaState {
  readonly extent: number;
  readonly epoch: number;
  /** Bytes of records, once sealed. */
  readonly sealed?: number;
  readonly life?: number;
  readonly isCopying?: true;
  readonly of?: ExtentOrigin | undefined;
}

export interface ReplicaLength {
  /** Bytes of records, all durable. */
  readonly length: number;
  /** Bytes of them that all replicas have had, as later records say. */
  readonly committed: number;
  /**
   * Starts of its node since the replica was made. 0: the length is known from memory, and not found by reading the
   * file.
   */
  readonly restarts: number;
  /** The length, if it is sealed. */
  readonly sealed?: number;
}

export interface Blocks {
  readonly data: Buffer;
  readonly crcs: Uint32Array;
}

/** A long one is read from its sender's memory, and later short ones arrive sooner. */
const EARLY_MAX = 64;
const SCAN_BYTES = 256 * 1024;

export class Replica {
  readonly extent: number;
  readonly #file: ExtentFile;
  readonly #state: DurableValue<ReplicaState>;
  readonly #commits: GroupCommit;
  readonly #restarts: number;
  /** In memory before it is durable: from the moment of a fence on nothing older is let in. */
  #epoch: number;
  #end = 0;
  #durable = 0;
  #committed = 0;
  #tail: Promise<void> = Promise.resolve();
  #failure: Error | undefined;
  readonly #early = new Map<number, () => void>();

  private constructor(file: ExtentFile, state: DurableValue<ReplicaState>, restarts: number) {
    this.extent = state.value!.extent;
    this.#epoch = state.value!.epoch;
    this.#file = file;
    this.#state = state;
    this.#commits = new GroupCommit(() => file.sync());
    this.#restarts = restarts;
  }

  static async create(file: ExtentFile, value: ReplicaState): Promise<Replica> {
    const state = await DurableValue.load<ReplicaState>(file);
    await state.store(value);
    return new Replica(file, state, 0);
  }

  /**
   * The replica in a file of an earlier start of the node; `bootCount` counts its starts. Undefined if the file is
   * none.
   */
  static async recover(file: ExtentFile, bootCount: number): Promise<Replica | undefined> {
    const state = await DurableValue.load<ReplicaState>(file);
    if (state.value === undefined) return undefined;
    const replica = new Replica(file, state, bootCount - (state.value.life ?? bootCount - 1));
    await replica.#recover();
    return replica;
  }

  async #recover(): Promise<void> {
    const { sealed } = this.state;
    const { length, committed } = sealed === undefined ? await this.#findEnd() : { length: sealed, committed: sealed };
    this.#end = length;
    this.#durable = length;
    this.#committed = committed;
  }

  get state(): ReplicaState {
    return this.#state.value!;
  }

  get length(): number {
    return this.#durable;
  }

  get readable(): number {
    return this.state.sealed ?? Math.min(this.#committed, this.#durable);
  }

  /** Whether it takes no more appends because its node went down while it was open. */
  get isStopped(): boolean {
    return this.#restarts > 0 && this.state.sealed === undefined;
  }

  get failure(): Error | undefined {
    return this.#failure;
  }

  /**
   * One that has overtaken others on its way waits for them. The same append again does nothing more. Throws FENCED,
   * SEALED, CONFLICT if there is something else at its place or too many wait, DAMAGED if it did not arrive as it was
   * sent.
   */
  async append(epoch: number, offset: number, record: Buffer): Promise<void> {
    this.#checkOpen(epoch);
    const head = checkRecord(record, this.extent, offset);
    if (head === undefined || record.length !== recordBytes(head.length))
      throw new RpcError('DAMAGED', `the record for ${offset} of extent ${this.extent} did not arrive intact`);
    if (offset > this.#end) {
      await this.#predecessors(offset);
      this.#checkOpen(epoch);
    }
    this.#committed = Math.max(this.#committed, Math.min(head.committed, this.#end));
    if (offset < this.#end) return this.#appendedBefore(head);
    if (this.#failure !== undefined) throw this.#failure;
    const end = offset + record.length;
    this.#end = end;
    this.#letGo(end);
    const before = this.#tail;
    const mine = this.#write(offset, record);
    this.#tail = before
      .then(() => mine)
      .then(() => {
        this.#durable = end;
      });
    mine.catch(() => {});
    this.#tail.catch(() => {});
    return this.#tail;
  }

  #checkOpen(epoch: number): void {
    this.checkEpoch(epoch);
    if (this.isStopped || this.state.sealed !== undefined)
      throw new RpcError('SEALED', `extent ${this.extent} takes no more appends here`);
  }

  /** Resolves when the extent ends at `offset`, or never will: a fence or a failure ends the wait. */
  #predecessors(offset: number): Promise<void> {
    if (this.#early.size >= EARLY_MAX || this.#early.has(offset))
      throw new RpcError('CONFLICT', `extent ${this.extent} ends at ${this.#end}, and not at ${offset}`);
    return new Promise((resolve) => this.#early.set(offset, resolve));
  }

  #letGo(offset?: number): void {
    for (const [place, go] of this.#early) {
      if (offset !== undefined && place !== offset) continue;
      this.#early.delete(place);
      go();
    }
  }

  async #write(offset: number, record: Buffer): Promise<void> {
    try {
      await this.#file.write(SLOTS_BYTES + offset, record);
      await this.#commits.commit();
    } catch (error) {
      this.#failure ??= error as Error;
      this.#letGo();
      throw error;
    }
  }

  async #appendedBefore({ offset, writer, sequence, length }: RecordHead): Promise<void> {
    await this.#tail;
    const there = await this.#readHead(offset);
    if (there?.writer === writer && there.sequence === sequence && there.length === length) return;
    throw new RpcError('CONFLICT', `extent ${this.extent} has another record at ${offset}`);
  }

  checkEpoch(epoch: number): void {
    if (epoch === this.#epoch) return;
    throw new RpcError('FENCED', `extent ${this.extent} is in epoch ${this.#epoch}, and not in ${epoch}`);
  }

  /**
   * Durably refuses earlier epochs and resolves to the length. Appends in flight have ended by then, none of them
   * successfully. Throws FENCED for an epoch that has itself passed.
   */
  async fence(epoch: number): Promise<ReplicaLength> {
    if (epoch < this.#epoch) this.checkEpoch(epoch);
    if (epoch > this.#epoch) {
      this.#epoch = epoch;
      this.#letGo();
    }
    await this.#tail.catch(() => {});
    if (this.state.epoch < epoch) await this.#state.store({ ...this.state, epoch });
    const committed = Math.min(this.#committed, this.#durable);
    const { sealed } = this.state;
    const known = sealed !== undefined && { sealed };
    return { length: this.#durable, committed, restarts: this.#restarts, ...known };
  }

  /** False: it is shorter than that, and has to be completed first. */
  async seal(epoch: number, length: number): Promise<boolean> {
    await this.fence(epoch);
    if (this.#durable < length) return false;
    if (this.state.sealed !== undefined) {
      invariant(this.state.sealed === length, `extent ${this.extent} is sealed at ${this.state.sealed} and ${length}`);
      return true;
    }
    await this.#file.truncate(SLOTS_BYTES + length);
    const { of } = this.state;
    await this.#store({ extent: this.extent, epoch, sealed: length, ...(of !== undefined && { of }) });
    this.#durable = length;
    this.#end = length;
    return true;
  }

  async #store(state: ReplicaState): Promise<void> {
    try {
      await this.#state.store(state);
    } catch (error) {
      this.#failure ??= error as Error;
      throw error;
    }
  }

  async restore(offset: number, records: Buffer): Promise<void> {
    await this.#file.write(SLOTS_BYTES + offset, records);
    await this.#file.sync();
    this.#durable = Math.max(this.#durable, offset + records.length);
    this.#end = Math.max(this.#end, this.#durable);
  }

  /** Throws DAMAGED, MISSING for what lies beyond the end, INVALID for blocks that the record does not have. */
  async readBlocks(offset: number, first: number, count: number): Promise<Blocks> {
    // Not `readable`: the writer knows that a record is committed before the nodes do.
    if (offset >= this.#durable) throw new RpcError('MISSING', `extent ${this.extent} has nothing at ${offset}`);
    const start = await this.#file.read(SLOTS_BYTES + offset, HEADER_BYTES);
    const headBytes = headBytesIn(start);
    const bytes = headBytes === undefined ? start : await this.#file.read(SLOTS_BYTES + offset, headBytes);
    const head = readHead(bytes, this.extent, offset);
    if (head === undefined) throw this.#damaged(offset);
    const end = first + count;
    if (first < 0 || count < 1 || end > blocksOf(head.length))
      throw new RpcError('INVALID', `the record at ${offset} has ${blocksOf(head.length)} blocks`);
    const dataEnd = Math.min(end * BLOCK_BYTES, head.length);
    const from = first * BLOCK_BYTES;
    const data = await this.#file.read(SLOTS_BYTES + offset + dataAt(head.length) + from, dataEnd - from);
    const crcs = crcsIn(bytes, first, end);
    if (data.length < dataEnd - from || !areBlocksIntact(data, crcs)) throw this.#damaged(offset);
    return { data, crcs };
  }

  #damaged(offset: number): RpcError {
    return new RpcError('DAMAGED', `the record at ${offset} of extent ${this.extent} is damaged here`);
  }

  /**
   * Throws DAMAGED, and UNVERIFIED at the end of a replica that may be an older copy: others may have more. `isFenced`:
   * records count that are not known to be committed.
   */
  async fetch(offset: number, bytesMax: number, isFenced = false): Promise<Buffer> {
    const end = isFenced ? this.#durable : this.readable;
    if (offset >= end) {
      if (this.isStopped && !isFenced)
        throw new RpcError(
          'UNVERIFIED',
          `extent ${this.extent} waits to be sealed ('rocev2 extents status' says why): its end is not certain here`,
        );
      return Buffer.alloc(0);
    }
    const bytes = await readRecords(
      (count) => this.#file.read(SLOTS_BYTES + offset, count),
      Math.min(Math.max(bytesMax, RECORD_ALIGN), end - offset),
    );
    let at = 0;
    for (const record of intactRecordsIn(bytes, this.extent, offset)) at += record.bytes.length;
    if (at === 0) throw this.#damaged(offset);
    return bytes.subarray(0, at);
  }

  readPlain(offset: number, length: number): Promise<Buffer> {
    return this.#file.read(SLOTS_BYTES + offset, Math.max(0, Math.min(length, this.#durable - offset)));
  }

  /** After the first damaged head in a row nothing is known until the next intact record. */
  async *damagedOffsets(end = this.readable): AsyncGenerator<number, void, undefined> {
    for (let offset = 0; offset < end; ) {
      const head = await this.#readHead(offset);
      const whole = head && (await this.#file.read(SLOTS_BYTES + offset, recordBytes(head.length)));
      if (whole === undefined || checkRecord(whole, this.extent, offset) === undefined) yield offset;
      offset =
        head === undefined ? await this.#nextRecord(offset + RECORD_ALIGN, end) : offset + recordBytes(head.length);
    }
  }

  async #readHead(offset: number): Promise<RecordHead | undefined> {
    const start = await this.#file.read(SLOTS_BYTES + offset, HEADER_BYTES);
    const headBytes = headBytesIn(start);
    if (headBytes === undefined) return undefined;
    return readHead(await this.#file.read(SLOTS_BYTES + offset, headBytes), this.extent, offset);
  }

  async #nextRecord(from: number, end: number): Promise<number> {
    for (let base = from; base < end; base += SCAN_BYTES) {
      const bytes = await this.#file.read(SLOTS_BYTES + base, Math.min(SCAN_BYTES, end - base));
      for (let at = 0; at < bytes.length; at += RECORD_ALIGN) {
        if (headBytesIn(bytes.subarray(at)) === undefined) continue;
        if ((await this.#readHead(base + at)) !== undefined) return base + at;
      }
    }
    return end;
  }

  /**
   * Bytes of records in a file that was open when its node went down: up to the first record that is not intact. If a
   * later record says that this one was committed, it is not a torn tail but damage, and the records after it count.
   */
  async #findEnd(): Promise<{ readonly length: number; readonly committed: number }> {
    const end = Math.max(0, (await this.#file.size()) - SLOTS_BYTES);
    let length = 0;
    let committed = 0;
    let damagedAt: number | undefined;
    for (let offset = 0; offset < end; ) {
      const head = await this.#readHead(offset);
      const whole = head && (await this.#file.read(SLOTS_BYTES + offset, recordBytes(head.length)));
      const isIntact = whole !== undefined && checkRecord(whole, this.extent, offset) !== undefined;
      if (!isIntact) damagedAt ??= offset;
      if (head !== undefined) committed = Math.max(committed, head.committed);
      const next =
        head === undefined ? await this.#nextRecord(offset + RECORD_ALIGN, end) : offset + recordBytes(head.length);
      if (isIntact && (damagedAt === undefined || damagedAt < committed)) {
        length = next;
        damagedAt = undefined;
      }
      offset = next;
    }
    return { length: Math.max(length, Math.min(committed, end)), committed };
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
