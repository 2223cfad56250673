/**
 * Client of the READ counterpart: READs granted blocks in grant order, at most `readsMax` at a time (the connection's
 * responder resources), and releases each by the ack policy.
 */

import { checkOptions, checkWhole } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { Access } from '../verbs/access.js';
import { BlockMemory, POOL_BLOCKS_MAX } from './block-memory.js';
import { type BlockConsumer, BlockReleaser, checkConsumer } from './block-releaser.js';
import type { ReleasePolicy } from './release-policy.js';
import { RemoteBlocks } from './remote-blocks.js';
import { checkLink, type WindowLink } from './window-link.js';
import type { ControlMessage } from './window-messages.js';

/** How the reader uses its pool. */
export interface PoolReaderOptions {
  /** Most blocks in the pool that this side accepts; the link must have been made for as many. */
  readonly blocksMax: number;
  /** Most outstanding READs; at most the QP's max_rd_atomic. */
  readonly readsMax: number;
  /** When emptied blocks are acknowledged. */
  readonly policy: ReleasePolicy;
  /** Called with the data of each block. */
  readonly onBlock: BlockConsumer;
}

/** The side that reads granted blocks. */
export class PoolReader {
  /** Ignored grants: of blocks that are not in the pool or were granted already. */
  invalidGrants = 0;
  readonly #link: WindowLink;
  readonly #options: PoolReaderOptions;
  readonly #blocks = new RemoteBlocks();
  readonly #releaser: BlockReleaser;
  readonly #granted: Array<{ readonly id: number; readonly bytes: number }> = [];
  readonly #held = new Set<number>();
  #local: BlockMemory | undefined;
  #reading = 0;
  #ended = false;
  #settle!: { resolve: () => void; reject: (error: Error) => void };
  /**
   * Resolves when the source has sent its end and all data has been consumed. Rejects with ERR_ROCE_MISMATCH if the
   * source breaks the protocol, ERR_ROCE_CLOSED if the reader is closed first, and with the error that ended the
   * connection.
   */
  readonly finished: Promise<void>;

  constructor(link: WindowLink, options: PoolReaderOptions) {
    checkLink(link);
    checkOptions('PoolReader', options, { blocksMax: true, readsMax: true, policy: true, onBlock: true });
    checkWhole('blocksMax', options.blocksMax, 1, POOL_BLOCKS_MAX);
    checkWhole('readsMax', options.readsMax, 1, POOL_BLOCKS_MAX);
    checkConsumer(options.policy, options.onBlock);
    this.#link = link;
    this.#options = options;
    this.#releaser = new BlockReleaser(link, options.policy, options.onBlock);
    this.finished = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.finished.catch(() => {});
    link.onMessage = (message) => this.#onMessage(message);
    link.onFailure = (error) => this.#settle.reject(error);
  }

  /** Acknowledgements sent. */
  get acknowledgements(): number {
    return this.#releaser.acknowledgements;
  }

  /** Frees the landing area. The queue pair must be closed or in ERR before. */
  async close(): Promise<void> {
    this.#link.close();
    this.#releaser.close();
    this.#settle.reject(new RoceError('ERR_ROCE_CLOSED', 'the reader is closed'));
    await this.#local?.close();
  }

  #onMessage(message: ControlMessage): void {
    if (message.type === 'POOL') void this.#onPool(message).catch((error: Error) => this.#link.fail(error));
    else if (message.type === 'GRANT') this.#onGrant(message);
    else this.#link.counters.malformed++;
  }

  async #onPool(message: ControlMessage): Promise<void> {
    if (!this.#blocks.add(message, this.#options.blocksMax) || this.#local !== undefined) {
      throw new RoceError(
        'ERR_ROCE_MISMATCH',
        `the peer describes a pool of ${message.count} blocks that cannot be used`,
        `this side accepts at most ${this.#options.blocksMax} blocks`,
      );
    }
    this.#releaser.version = message.version;
    const local = new BlockMemory(this.#link.pd, message.bytes, Access.LOCAL_WRITE);
    await local.add(message.count);
    this.#local = local;
    this.#pump();
  }

  #onGrant({ id, bytes }: ControlMessage): void {
    if (id < 1 || id > this.#blocks.count || bytes > this.#blocks.blockBytes || this.#held.has(id)) {
      this.invalidGrants++;
      return;
    }
    if (bytes === 0) this.#ended = true;
    else {
      this.#held.add(id);
      this.#granted.push({ id, bytes });
    }
    this.#pump();
  }

  #pump(): void {
    if (this.#local === undefined) return; // Grants may overtake the registration of the landing area.
    while (this.#granted.length > 0 && this.#reading < this.#options.readsMax && this.#link.room > 0) {
      const { id, bytes } = this.#granted.shift()!;
      const { region, offset } = this.#local.locate(id)!;
      this.#reading++;
      const sges = [region.sge(offset, bytes)];
      this.#link.post({ opcode: 'RDMA_READ', sges, ...this.#blocks.locate(id) }, () => {
        this.#reading--;
        this.#releaser.take(id, region.bytes.subarray(offset, offset + bytes), () => this.#onConsumed(id));
        this.#pump();
      });
    }
    if (this.#ended && this.#held.size === 0) this.#settle.resolve();
  }

  #onConsumed(id: number): void {
    this.#held.delete(id);
    if (this.#ended && this.#held.size === 0) this.#settle.resolve();
  }
}
