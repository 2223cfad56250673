/**
 * Server of the READ counterpart: fills and grants blocks. Between grant and acknowledgement a block is the client's
 * and not touched here.
 */

import { checkKind, checkOptions } from '../core/arguments.js';
import { Access } from '../verbs/access.js';
import { BlockMemory, checkPool } from './block-memory.js';
import { BlockRing } from './block-ring.js';
import { checkLink, type WindowLink } from './window-link.js';
import type { ControlMessage } from './window-messages.js';

/** Fills a block and returns the number of bytes; 0 at the end of the data. */
export type BlockProducer = (block: Uint8Array) => number | Promise<number>;

/** Pool and producer of the source. */
export interface PoolSourceOptions {
  /** Blocks in the pool (M). */
  readonly blocks: number;
  /** Block size in bytes (m). */
  readonly blockBytes: number;
  /** Fills a free block. */
  readonly fill: BlockProducer;
}

/** The side that fills blocks for the peer to read. */
export class PoolSource {
  /** Grants sent. */
  grants = 0;
  /** Ignored acknowledgements: they named blocks that were not granted. */
  invalidAcks = 0;
  /** How often every block was granted. */
  windowStalls = 0;
  readonly #link: WindowLink;
  readonly #memory: BlockMemory;
  readonly #ring = new BlockRing();
  readonly #fill: BlockProducer;
  #filling = false;
  #ended = false;

  private constructor(link: WindowLink, options: PoolSourceOptions) {
    this.#link = link;
    this.#memory = new BlockMemory(link.pd, options.blockBytes, Access.LOCAL_WRITE | Access.REMOTE_READ);
    this.#fill = options.fill;
  }

  /**
   * Allocates the pool, describes it, and begins to fill blocks. Rejects with ERR_ROCE_OUT_OF_RANGE for an impossible
   * size.
   */
  static async open(link: WindowLink, options: PoolSourceOptions): Promise<PoolSource> {
    checkLink(link);
    checkOptions('PoolSource.open', options, { blocks: true, blockBytes: true, fill: true });
    checkPool(options.blocks, options.blockBytes);
    checkKind('fill', options.fill, typeof options.fill === 'function', 'a function');
    const source = new PoolSource(link, options);
    link.onMessage = (message) => source.#onMessage(message);
    const { firstId, region } = await source.#memory.add(options.blocks);
    const { addr: address, rkey } = region;
    const { blocks: count, blockBytes: bytes } = options;
    source.#ring.grow(firstId, count);
    link.send({ type: 'POOL', version: 1, id: firstId, count, bytes, rkey, address });
    void source.#pump();
    return source;
  }

  /** Frees the pool. The queue pair must be closed or in ERR before. */
  async close(): Promise<void> {
    this.#ended = true;
    this.#link.close();
    await this.#memory.close();
  }

  async #pump(): Promise<void> {
    if (this.#filling) return;
    this.#filling = true;
    try {
      while (!this.#ended && this.#ring.free > 0) {
        const id = this.#ring.take();
        const { region, offset } = this.#memory.locate(id)!;
        const bytes = await this.#fill(region.bytes.subarray(offset, offset + this.#memory.blockBytes));
        if (bytes === 0) this.#ended = true;
        this.grants++;
        this.#link.send({ type: 'GRANT', version: 1, id, bytes });
      }
      if (!this.#ended) this.windowStalls++;
    } catch (error) {
      this.#link.fail(error as Error);
    } finally {
      this.#filling = false;
    }
  }

  #onMessage({ type, id, count }: ControlMessage): void {
    if (type === 'ACK_ID') {
      if (!this.#ring.releaseId(id)) this.invalidAcks++;
    } else if (type === 'ACK_COUNT') {
      if (!this.#ring.releaseCount(count)) this.invalidAcks++;
    } else this.#link.counters.malformed++;
    void this.#pump();
  }
}
