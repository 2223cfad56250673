/**
 * Client of the write protocol (sliding-window memory pool, protocol steps 3, 4, 6 and 7). While the window has free
 * blocks, writes need no message from the server; each carries the id of its block as immediate data. When the window
 * is exhausted, the client waits for acknowledgements; when that happens often, it requests a larger pool.
 */

import { checkOptions, checkWhole, ifGiven } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { U32 } from '../core/u64.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import { POOL_BLOCKS_MAX } from './block-memory.js';
import { BlockRing } from './block-ring.js';
import { RemoteBlocks } from './remote-blocks.js';
import { checkLink, checkSource, type WindowLink } from './window-link.js';
import type { ControlMessage } from './window-messages.js';

/** How the writer uses the pool of its peer. */
export interface PoolWriterOptions {
  /** Most blocks in the pool that this side accepts; the link must have been made for as many. */
  readonly blocksMax: number;
  /** Request twice as many blocks after this many exhaustions under one version of the pool. Default: never. */
  readonly growAfterStalls?: number | undefined;
}

interface Job {
  readonly source: MemoryRegion;
  readonly offset: number;
  readonly length: number;
  posted: number;
  done: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** The side that writes into the peer's pool. */
export class PoolWriter {
  /** How often data waited because no block was free. */
  windowStalls = 0;
  /** Ignored acknowledgements: they named blocks that were not in use. */
  invalidAcks = 0;
  readonly #link: WindowLink;
  readonly #options: PoolWriterOptions;
  readonly #blocks = new RemoteBlocks();
  readonly #ring = new BlockRing();
  readonly #jobs: Job[] = [];
  #stallsThisVersion = 0;
  #stalled = false;
  #growthAsked = false;
  #failure: Error | undefined;
  #ready!: { resolve: () => void; reject: (error: Error) => void };
  /** Resolves when the pool's description has arrived. */
  readonly ready: Promise<void>;

  constructor(link: WindowLink, options: PoolWriterOptions) {
    checkLink(link);
    checkOptions('PoolWriter', options, { blocksMax: true, growAfterStalls: true });
    checkWhole('blocksMax', options.blocksMax, 1, POOL_BLOCKS_MAX);
    ifGiven(options.growAfterStalls, (stalls) => checkWhole('growAfterStalls', stalls, 1, U32 - 1));
    this.#link = link;
    this.#options = options;
    this.ready = new Promise((resolve, reject) => {
      this.#ready = { resolve, reject };
    });
    this.ready.catch(() => {});
    link.onMessage = (message) => this.#onMessage(message);
    link.onFailure = (error) => this.#onFailure(error);
  }

  /** Present number of blocks (M); 0 before the description. */
  get blocks(): number {
    return this.#ring.size;
  }

  /** Block size in bytes (m); 0 before the description. */
  get blockBytes(): number {
    return this.#blocks.blockBytes;
  }

  /** Number of written blocks that the peer has not released yet. */
  get blocksInUse(): number {
    return this.#ring.inUse;
  }

  /**
   * Writes [offset, offset + length) of `source` into ceil(length / m) blocks of the pool. Resolves when the data has
   * arrived in the peer's memory; until then, `source` must not change. Calls run in order and may overlap. Throws like
   * `source.sge` does for a range outside; rejects with ERR_ROCE_CLOSED after {@link close}, ERR_ROCE_MISMATCH when the
   * peer breaks the protocol, and with the error that ended the connection.
   */
  write(source: MemoryRegion, offset = 0, length = source?.length - offset): Promise<void> {
    checkSource(source, offset, length);
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#jobs.push({ source, offset, length, posted: 0, done: 0, resolve, reject });
      this.#pump();
    });
  }

  /** Closes the writer; present and later writes reject with ERR_ROCE_CLOSED. */
  close(): void {
    this.#link.close();
    this.#onFailure(new RoceError('ERR_ROCE_CLOSED', 'the writer is closed'));
  }

  #pump(): void {
    const { blockBytes } = this;
    for (let job = this.#nextJob(); job !== undefined; job = this.#nextJob()) {
      if (this.#ring.free === 0) {
        this.#onExhausted();
        return;
      }
      if (this.#link.room <= 0) return;
      this.#stalled = false;
      this.#writeBlock(job, Math.min(blockBytes, job.length - job.posted));
    }
  }

  /** Completions arrive in order, so only the newest jobs have any. */
  #nextJob(): Job | undefined {
    return this.#jobs.find(({ posted, length }) => posted < length);
  }

  #writeBlock(job: Job, bytes: number): void {
    const id = this.#ring.take();
    const sges = [job.source.sge(job.offset + job.posted, bytes)];
    job.posted += bytes;
    this.#link.post({ opcode: 'RDMA_WRITE_WITH_IMM', immediate: id, sges, ...this.#blocks.locate(id) }, () => {
      job.done += bytes;
      if (job.done === job.length) {
        this.#jobs.splice(this.#jobs.indexOf(job), 1);
        job.resolve();
      }
      this.#pump();
    });
  }

  #onExhausted(): void {
    if (this.#stalled || this.#blocks.version === 0) return;
    this.#stalled = true;
    this.windowStalls++;
    this.#stallsThisVersion++;
    const { growAfterStalls, blocksMax } = this.#options;
    if (growAfterStalls === undefined || this.#growthAsked || this.#stallsThisVersion < growAfterStalls) return;
    const count = Math.min(this.#ring.size, blocksMax - this.#ring.size);
    if (count < 1) return;
    this.#growthAsked = true;
    this.#link.send({ type: 'GROW', version: this.#blocks.version, count });
  }

  #onMessage(message: ControlMessage): void {
    switch (message.type) {
      case 'POOL':
        this.#onPool(message);
        return;
      case 'ACK_ID':
        if (!this.#ring.releaseId(message.id)) this.invalidAcks++;
        break;
      case 'ACK_COUNT':
        if (!this.#ring.releaseCount(message.count)) this.invalidAcks++;
        break;
      case 'GROW_REFUSED':
        return; // `#growthAsked` stays set, because the answer would be the same.
      default:
        this.#link.counters.malformed++;
        return;
    }
    this.#pump();
  }

  #onPool(message: ControlMessage): void {
    if (!this.#blocks.add(message, this.#options.blocksMax)) {
      this.#link.fail(
        new RoceError(
          'ERR_ROCE_MISMATCH',
          `the peer describes a pool (version ${message.version}, ${message.count} blocks from ${message.id}) that cannot be used`,
          `this side accepts at most ${this.#options.blocksMax} blocks`,
        ),
      );
      return;
    }
    this.#ring.grow(message.id, message.count);
    this.#stallsThisVersion = 0;
    this.#growthAsked = false;
    this.#ready.resolve();
    this.#pump();
  }

  #onFailure(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#ready.reject(error);
    for (const job of this.#jobs.splice(0)) job.reject(error);
  }
}
