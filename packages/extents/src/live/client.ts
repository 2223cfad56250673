import { randomUUID } from 'node:crypto';
import { RpcError } from '@rocev2/rpc';
import { checkKind, checkOptions, checkWhole, type OptionNames } from 'rocev2/internal/core';
import type { BlockDeviceError } from 'rocev2/internal/disk';
import { offerCrc32c, systemRandom } from 'rocev2/internal/driver';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import { logOf, mapOf } from '../disk/disk-parts.js';
import {
  copyDisk,
  createDisk,
  type DiskOwner,
  describeDisk,
  diskOwner,
  type ListedStreamDisk,
  listDisks,
  openDisk,
  removeDisk,
} from '../disk/disks.js';
import type { DiskMetadata } from '../disk/map-records.js';
import type { StreamDisk } from '../disk/stream-disk.js';
import { ExtentReader, type ReaderCounters } from '../extent-reader.js';
import {
  type ClusterStatus,
  codeOf,
  type ExtentPlace,
  type Manager,
  type RecoveryReport,
  type UndeleteReport,
} from '../messages.js';
import { dataIn } from '../record.js';
import { type Location, StreamWriter } from '../stream-writer.js';
import { openCoder } from './coder.js';
import { checkTransport, type ExtentTransport } from './peer-connector.js';
import { askManager, Peers } from './peers.js';
import { CLIENT_TIMING } from './timing.js';

/** Options of {@link openExtents}. */
export interface OpenExtentsOptions {
  /** Device of the program. */
  readonly device: RdmaDevice;
  /** The manager, `HOST:PORT`; of several managers one or more, with commas between them. */
  readonly manager: string;
  /** Default `auto`: RDMA connections, and TCP with a peer where they fail, for a minute. */
  readonly transport?: ExtentTransport | undefined;
}

/** What `openStream` of {@link ExtentsClient} takes. */
export interface OpenStreamOptions {
  /** Name of the owner, as shown to others. Default: a unique name. */
  readonly owner?: string | undefined;
  /** Fences an owner whose lease has not ended. Default: the call rejects. */
  readonly takeOver?: boolean | undefined;
}

/** What `openDisk` of {@link ExtentsClient} takes. */
export interface OpenDiskOptions extends OpenStreamOptions {
  /** Called for each read that fails with EIO because the cluster does not have the blocks now. Must not throw. */
  readonly onUnreadable?: ((error: BlockDeviceError) => void) | undefined;
  /**
   * Called with a line for the operator when the lease has ended because no manager renewed it, and when it is valid
   * again. Requests wait between the two. Must not throw.
   */
  readonly onNotice?: ((notice: string) => void) | undefined;
}

/** What `createDisk` of {@link ExtentsClient} takes. */
export interface CreateDiskOptions {
  /** Size, bytes: a multiple of 512, 1 TiB at most. Space is taken when it is written. */
  readonly sizeBytes: number;
}

/** What `read` of {@link ExtentsClient} takes. */
export interface ReadStreamOptions {
  /** Records that are left out at the beginning. Default 0. */
  readonly from?: number | undefined;
}

/** A record of a stream. */
export interface ReadRecord extends Location {
  /** Which one of the stream it is, from 0. */
  readonly number: number;
  /** Its bytes. */
  readonly data: Buffer;
}

const OPTIONS: OptionNames<OpenExtentsOptions> = { device: true, manager: true, transport: true };
const STREAM_OPTIONS: OptionNames<OpenStreamOptions> = { owner: true, takeOver: true };
const OPEN_DISK_OPTIONS: OptionNames<OpenDiskOptions> = { ...STREAM_OPTIONS, onUnreadable: true, onNotice: true };
const DISK_OPTIONS: OptionNames<CreateDiskOptions> = { sizeBytes: true };
const READ_OPTIONS: OptionNames<ReadStreamOptions> = { from: true };

/** A unique name for the owner of a disk until it is finished; shown as its owner. */
function makerName(): string {
  return `its maker ${randomUUID().slice(0, 8)}`;
}

/**
 * The streams of a cluster; made by {@link openExtents}. Calls of the manager reject with ERR_ROCE_CONNECT where there
 * is none.
 */
export class ExtentsClient implements AsyncDisposable {
  readonly #address: string;
  readonly #peers: Peers;
  readonly #manager: Manager;
  readonly #device: RdmaDevice;
  readonly #coder = openCoder();
  readonly #reader: ExtentReader;

  /** @internal */
  constructor({ device, manager, transport }: OpenExtentsOptions) {
    this.#device = device;
    this.#address = manager;
    this.#peers = Peers.of(device, transport);
    this.#manager = this.#peers.manager(manager);
    this.#reader = new ExtentReader({ ...this.#parts(), combiner: this.#coder, random: systemRandom() });
  }

  #parts() {
    return { nodes: this.#peers.nodes, manager: this.#manager, clock: this.#device.clock, timing: CLIENT_TIMING };
  }

  #diskParts() {
    return { ...this.#parts(), reader: this.#reader, random: systemRandom() };
  }

  #ask<T>(call: Promise<T>): Promise<T> {
    return askManager(this.#address, call);
  }

  /** Nodes, streams and extents. */
  status(): Promise<ClusterStatus> {
    return this.#ask(this.#manager.call('status', {}, CLIENT_TIMING.callMs));
  }

  /**
   * Makes an empty stream, unless there is one. Rejects with ERR_ROCE_REMOTE (`INVALID`) for an invalid name. A name
   * has letters, digits, `.`, `_` and `-`, 128 at most.
   */
  async createStream(stream: string): Promise<void> {
    await this.#ask(this.#manager.call('createStream', { stream }, CLIENT_TIMING.callMs));
  }

  /**
   * Deletes a stream. Nodes release its space soon after. Rejects with ERR_ROCE_REMOTE: `MISSING`, or `BUSY` while it
   * has an owner.
   */
  async deleteStream(stream: string): Promise<void> {
    await this.#ask(this.#manager.call('deleteStream', { stream }, CLIENT_TIMING.callMs));
  }

  /** Extents of a stream in order, and where they are. Rejects with ERR_ROCE_REMOTE (`MISSING`). */
  async extents(stream: string): Promise<readonly ExtentPlace[]> {
    return (await this.#ask(this.#manager.call('locate', { stream }, CLIENT_TIMING.callMs))).extents;
  }

  /**
   * Becomes the owner of a stream, which alone appends to it. Rejects with ERR_ROCE_REMOTE: `MISSING`, or `BUSY` while
   * another owner has a lease.
   */
  async openStream(stream: string, options: OpenStreamOptions = {}): Promise<StreamWriter> {
    checkOptions('openStream', options, STREAM_OPTIONS);
    const { owner = randomUUID(), takeOver = false } = options;
    const { writer } = await this.#ask(StreamWriter.open({ stream, owner, takeOver }, this.#parts()));
    return writer;
  }

  /**
   * The records of a stream in order, each append once, up to the last one that its owner has reported as durable on
   * all replicas. Once the stream is closed, these are all. Rejects with ERR_ROCE_REMOTE: `MISSING`, also if the stream
   * is deleted during the call, `UNREACHABLE` or `DAMAGED` if no replica has an intact copy.
   */
  async *read(stream: string, options: ReadStreamOptions = {}): AsyncGenerator<ReadRecord, void, undefined> {
    checkOptions('read', options, READ_OPTIONS);
    const { from = 0 } = options;
    checkWhole('from', from, 0, Number.MAX_SAFE_INTEGER);
    let number = 0;
    const extents = await this.extents(stream);
    try {
      for await (const { head, bytes } of this.#reader.scan(extents)) {
        if (number >= from) yield { number, extent: head.extent, offset: head.offset, data: dataIn(bytes, head) };
        number++;
      }
    } catch (error) {
      throw await this.#whyUnread(stream, error);
    }
  }

  async #whyUnread(stream: string, error: unknown): Promise<unknown> {
    if (codeOf(error) !== 'MISSING') return error;
    const now = await this.extents(stream).catch(codeOf);
    return now === 'MISSING' ? new RpcError('MISSING', `the stream '${stream}' was deleted while it was read`) : error;
  }

  /**
   * Seals extents of uncertain length with the replicas that answer now; records that only other nodes have are lost.
   * `extents`: their numbers, default all that {@link status} lists as waiting. Resolves to those that are sealed.
   * Rejects with ERR_ROCE_REMOTE (`UNREACHABLE`) if no replica of one answers.
   */
  async acceptExtents(extents: readonly number[] = []): Promise<readonly number[]> {
    checkKind('extents', extents, Array.isArray(extents), 'a list of numbers');
    for (const [k, extent] of extents.entries()) checkWhole(`extents[${k}]`, extent, 1, Number.MAX_SAFE_INTEGER);
    return (await this.#ask(this.#manager.call('accept', { extents }, CLIENT_TIMING.callMs))).sealed;
  }

  /**
   * Rebuilds the metadata of the manager from the nodes that answer, after its latest copy is lost, and lets the
   * manager answer again. Nothing that the metadata has is removed. Memberships of extents in snapshots and clones that
   * were made after the copy are not known to nodes, and stay lost.
   */
  recoverMetadata(): Promise<RecoveryReport> {
    return this.#ask(this.#manager.call('recover', {}, CLIENT_TIMING.callMs));
  }

  /**
   * Undoes the deletion of a stream: nodes keep its extents for an hour, or for their `keepDeletedMs`. Extents that
   * were dropped from it in that time also come back. Rejects with ERR_ROCE_REMOTE: `CONFLICT` if there is such a
   * stream, `MISSING` if no node has an extent of it.
   */
  undeleteStream(stream: string): Promise<UndeleteReport> {
    return this.#ask(this.#manager.call('undelete', { stream }, CLIENT_TIMING.callMs));
  }

  /** As `undeleteStream`, for a disk. */
  async undeleteDisk(disk: string): Promise<UndeleteReport> {
    const log = await this.undeleteStream(logOf(disk));
    const map = await this.undeleteStream(mapOf(disk));
    return { extents: [...log.extents, ...map.extents], silent: [...new Set([...log.silent, ...map.silent])] };
  }

  /** All disks by name. Those in use are described as of their last checkpoint but one, or not at all. */
  async disks(): Promise<readonly ListedStreamDisk[]> {
    return listDisks(this.#diskParts(), await this.status());
  }

  /**
   * Makes an empty disk. Rejects with ERR_ROCE_REMOTE (`CONFLICT`) if there is one, ERR_ROCE_MALFORMED for an invalid
   * name (1 to 63 letters, digits, `.`, `_` and `-`), ERR_ROCE_OUT_OF_RANGE for an invalid size.
   */
  async createDisk(name: string, options: CreateDiskOptions): Promise<void> {
    checkOptions('createDisk', options, DISK_OPTIONS);
    await this.#ask(createDisk(this.#diskParts(), { name, sizeBytes: options.sizeBytes, owner: makerName() }));
  }

  /**
   * Makes a read-only disk with the present content of `disk`, which may be in use. Both share their data. Rejects with
   * ERR_ROCE_REMOTE: `CONFLICT`, `MISSING`.
   */
  async snapshotDisk(disk: string, snapshot: string): Promise<void> {
    await this.#ask(
      copyDisk(this.#diskParts(), { source: disk, name: snapshot, isSnapshot: true, owner: makerName() }),
    );
  }

  /** As `snapshotDisk`, and the new disk can be written. */
  async cloneDisk(disk: string, clone: string): Promise<void> {
    await this.#ask(copyDisk(this.#diskParts(), { source: disk, name: clone, isSnapshot: false, owner: makerName() }));
  }

  /**
   * Becomes the owner of a disk, which alone reads and writes it, or reads a snapshot. Rejects with ERR_ROCE_REMOTE:
   * `MISSING`, or `BUSY` while another owner has a lease. Close it before the client.
   */
  openDisk(name: string, options: OpenDiskOptions = {}): Promise<StreamDisk> {
    checkOptions('openDisk', options, OPEN_DISK_OPTIONS);
    const { owner = randomUUID(), takeOver = false, onUnreadable, onNotice } = options;
    return this.#ask(openDisk({ ...this.#diskParts(), onUnreadable, onNotice }, { name, owner, takeOver }));
  }

  /**
   * The owner of a disk, and the `HOST:PORT` where it serves the disk, if announced, as `rocev2 disk serve` does.
   * Rejects with ERR_ROCE_REMOTE (`MISSING`).
   */
  async diskOwner(name: string): Promise<DiskOwner> {
    return this.#ask(diskOwner(this.#diskParts(), name));
  }

  /**
   * Describes a disk. Undefined: it was never finished, or cannot be read now. Rejects with ERR_ROCE_REMOTE
   * (`MISSING`).
   */
  diskMetadata(name: string): Promise<DiskMetadata | undefined> {
    return this.#ask(describeDisk(this.#diskParts(), name));
  }

  /**
   * Deletes a disk. Data that snapshots and clones share with it stays. Rejects with ERR_ROCE_REMOTE: `MISSING`, or
   * `BUSY` while it has an owner.
   */
  async deleteDisk(name: string): Promise<void> {
    await this.#ask(removeDisk(this.#diskParts(), name));
  }

  /** Counters of its reads. */
  counters(): ReaderCounters {
    return { ...this.#reader.counters };
  }

  /** Ends all connections. Streams are closed before that. */
  async close(): Promise<void> {
    await this.#peers.close();
    await this.#coder.close();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Opens the streams of a cluster. Rejects with ERR_ROCE_CONNECT if there is no manager. */
export async function openExtents(options: OpenExtentsOptions): Promise<ExtentsClient> {
  checkOptions('openExtents', options, OPTIONS);
  checkKind('device', options.device, typeof options.device?.createPd === 'function', 'a device of openDevice()');
  offerCrc32c();
  checkKind('manager', options.manager, typeof options.manager === 'string', 'HOST:PORT');
  checkTransport(options.transport);
  const client = new ExtentsClient(options);
  try {
    await client.status();
    return client;
  } catch (error) {
    await client.close();
    throw error;
  }
}
