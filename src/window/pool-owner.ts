/**
 * Server of the write protocol: owns the pool, describes it to the writer once, and learns from immediate data which
 * block was filled (sliding-window memory pool, protocol steps 2 and 5). No request precedes a write.
 */

import { checkOptions, checkWhole, ifGiven, type OptionNames } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { Access } from '../verbs/access.js';
import { BlockMemory, checkPool, POOL_BLOCKS_MAX } from './block-memory.js';
import { type BlockConsumer, BlockReleaser, checkConsumer } from './block-releaser.js';
import type { ReleasePolicy } from './release-policy.js';
import { checkLink, type WindowLink } from './window-link.js';
import type { ControlMessage } from './window-messages.js';

/** Options of the pool's owner. */
export interface PoolOwnerOptions {
  /** Initial number of blocks (M), 1..65535. */
  readonly blocks: number;
  /** Bytes of a block (m). */
  readonly blockBytes: number;
  /**
   * Most blocks that the pool may grow to; the link must have been made for as many. Default: `blocks`, so that the
   * pool does not grow.
   */
  readonly blocksMax?: number | undefined;
  /** When freed blocks are acknowledged. */
  readonly policy: ReleasePolicy;
  /** Called to empty a written block. */
  readonly onBlock: BlockConsumer;
}

const OWNER_OPTIONS: OptionNames<PoolOwnerOptions> = {
  blocks: true,
  blockBytes: true,
  blocksMax: true,
  policy: true,
  onBlock: true,
};

/** The side that owns the pool others write to. */
export class PoolOwner {
  /** Ignored notices: they named no block of the pool, or one that was still full. */
  invalidNotices = 0;
  readonly #link: WindowLink;
  readonly #memory: BlockMemory;
  readonly #releaser: BlockReleaser;
  readonly #blocksMax: number;
  readonly #full = new Set<number>();
  #version = 0;
  #growing = false;

  private constructor(link: WindowLink, options: PoolOwnerOptions) {
    this.#link = link;
    this.#memory = new BlockMemory(link.pd, options.blockBytes, Access.LOCAL_WRITE | Access.REMOTE_WRITE);
    this.#releaser = new BlockReleaser(link, options.policy, options.onBlock);
    this.#blocksMax = options.blocksMax ?? options.blocks;
  }

  /** Allocates the pool and sends its description. Rejects with ERR_ROCE_OUT_OF_RANGE for an impossible size. */
  static async open(link: WindowLink, options: PoolOwnerOptions): Promise<PoolOwner> {
    checkLink(link);
    checkOptions('PoolOwner.open', options, OWNER_OPTIONS);
    const { blocks, blockBytes, blocksMax, policy, onBlock } = options;
    checkPool(blocks, blockBytes);
    ifGiven(blocksMax, (most) => checkWhole('blocksMax', most, blocks, POOL_BLOCKS_MAX));
    checkConsumer(policy, onBlock);
    const owner = new PoolOwner(link, options);
    link.onNotice = (id, bytes) => owner.#onNotice(id, bytes);
    link.onMessage = (message) => owner.#onMessage(message);
    await owner.#extend(options.blocks);
    return owner;
  }

  /** Blocks in the pool now. */
  get blocks(): number {
    return this.#memory.count;
  }

  /** Blocks that were written and not yet emptied. */
  get full(): number {
    return this.#full.size;
  }

  /** Acknowledgements sent. */
  get acknowledgements(): number {
    return this.#releaser.acknowledgements;
  }

  /** Frees the pool. The queue pair must be closed or in ERR before. */
  async close(): Promise<void> {
    this.#link.close();
    this.#releaser.close();
    await this.#memory.close();
  }

  async #extend(count: number): Promise<void> {
    const { firstId, region } = await this.#memory.add(count);
    this.#version++;
    this.#releaser.version = this.#version;
    this.#link.send({
      type: 'POOL',
      version: this.#version,
      id: firstId,
      count,
      bytes: this.#memory.blockBytes,
      rkey: region.rkey,
      address: region.addr,
    });
  }

  #onNotice(id: number, bytes: number): void {
    const place = this.#memory.locate(id);
    if (place === undefined || bytes > this.#memory.blockBytes || this.#full.has(id)) {
      this.invalidNotices++;
      return;
    }
    this.#full.add(id);
    const { region, offset } = place;
    this.#releaser.take(id, region.bytes.subarray(offset, offset + bytes), () => this.#full.delete(id));
  }

  #onMessage(message: ControlMessage): void {
    if (message.type !== 'GROW') {
      this.#link.counters.malformed++;
      return;
    }
    // A request made under an older version has been answered already, by the pool's growth.
    if (message.version !== this.#version || this.#growing) return;
    const count = Math.min(message.count, this.#blocksMax - this.#memory.count);
    if (count < 1) {
      this.#link.send({ type: 'GROW_REFUSED', version: this.#version });
      return;
    }
    this.#growing = true;
    this.#extend(count)
      .catch((error: unknown) => {
        if (!(error instanceof RoceError)) throw error;
        this.#link.send({ type: 'GROW_REFUSED', version: this.#version });
      })
      .catch((error: Error) => this.#link.fail(error))
      .finally(() => {
        this.#growing = false;
      });
  }
}
