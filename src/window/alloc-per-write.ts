/**
 * The baseline of comparisons: the writer requests a block before each write and waits for the answer. A round trip,
 * both CPUs and two control messages for every block.
 */

import { checkKind, checkOptions } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { Access } from '../verbs/access.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import { BlockMemory, checkPool } from './block-memory.js';
import type { BlockConsumer } from './block-releaser.js';
import { checkLink, checkSource, type WindowLink } from './window-link.js';

/** Options of the baseline's server. */
export interface BlockServerOptions {
  /** Blocks to hand out. */
  readonly blocks: number;
  /** Bytes of each. */
  readonly blockBytes: number;
  /** Called to empty a written block. */
  readonly onBlock: BlockConsumer;
}

/** Hands out blocks on request. */
export class BlockServer {
  /** Ignored notices: they named no block, or one that was not handed out. */
  invalidNotices = 0;
  readonly #link: WindowLink;
  readonly #memory: BlockMemory;
  readonly #consume: BlockConsumer;
  readonly #free: number[] = [];
  readonly #lent = new Set<number>();
  #waiting = 0;

  private constructor(link: WindowLink, options: BlockServerOptions) {
    this.#link = link;
    this.#memory = new BlockMemory(link.pd, options.blockBytes, Access.LOCAL_WRITE | Access.REMOTE_WRITE);
    this.#consume = options.onBlock;
  }

  /** Registers the blocks and begins to answer. Rejects with ERR_ROCE_OUT_OF_RANGE for an impossible size. */
  static async open(link: WindowLink, options: BlockServerOptions): Promise<BlockServer> {
    checkLink(link);
    checkOptions('BlockServer.open', options, { blocks: true, blockBytes: true, onBlock: true });
    checkPool(options.blocks, options.blockBytes);
    checkKind('onBlock', options.onBlock, typeof options.onBlock === 'function', 'a function');
    const server = new BlockServer(link, options);
    await server.#memory.add(options.blocks);
    for (let id = 1; id <= options.blocks; id++) server.#free.push(id);
    link.onMessage = ({ type }) => server.#onMessage(type);
    link.onNotice = (id, bytes) => server.#onNotice(id, bytes);
    return server;
  }

  /** Frees the blocks. The queue pair must already be closed or in ERR. */
  async close(): Promise<void> {
    this.#link.close();
    await this.#memory.close();
  }

  #onMessage(type: string): void {
    if (type !== 'ALLOC') {
      this.#link.counters.malformed++;
      return;
    }
    this.#waiting++;
    this.#serve();
  }

  #serve(): void {
    while (this.#waiting > 0 && this.#free.length > 0) {
      const id = this.#free.shift()!;
      const { region, offset } = this.#memory.locate(id)!;
      this.#waiting--;
      this.#lent.add(id);
      const address = region.addr + BigInt(offset);
      this.#link.send({ type: 'ALLOCATED', id, bytes: this.#memory.blockBytes, rkey: region.rkey, address });
    }
  }

  #onNotice(id: number, bytes: number): void {
    if (!this.#lent.delete(id) || bytes > this.#memory.blockBytes) {
      this.invalidNotices++;
      return;
    }
    const { region, offset } = this.#memory.locate(id)!;
    void this.#empty(id, region.bytes.subarray(offset, offset + bytes));
  }

  async #empty(id: number, bytes: Uint8Array): Promise<void> {
    try {
      await this.#consume(bytes, id);
    } catch (error) {
      this.#link.fail(error as Error);
      return;
    }
    this.#free.push(id);
    this.#serve();
  }
}

/** The writer of the baseline: requests a block, fills it, requests the next. */
export class BlockRequester {
  readonly #link: WindowLink;
  #waiter: { resolve: (block: Allocated) => void; reject: (error: Error) => void } | undefined;
  #failure: Error | undefined;

  constructor(link: WindowLink) {
    checkLink(link);
    this.#link = link;
    link.onFailure = (error) => {
      this.#failure = error;
      this.#waiter?.reject(error);
    };
    link.onMessage = ({ type, id, bytes, rkey, address }) => {
      if (type !== 'ALLOCATED' || this.#waiter === undefined) link.counters.malformed++;
      else this.#waiter.resolve({ id, bytes, rkey, remoteAddr: address });
      this.#waiter = undefined;
    };
  }

  /** As `PoolWriter.write`, one block at a time. */
  async write(source: MemoryRegion, offset = 0, length = source?.length - offset): Promise<void> {
    checkSource(source, offset, length);
    for (let sent = 0; sent < length; ) {
      const { id: immediate, bytes: room, ...target } = await this.#allocate();
      const bytes = Math.min(room, length - sent);
      const sges = [source.sge(offset + sent, bytes)];
      await this.#done((onDone) =>
        this.#link.post({ opcode: 'RDMA_WRITE_WITH_IMM', immediate, sges, ...target }, onDone),
      );
      sent += bytes;
    }
  }

  /** Closes the writer; a waiting request rejects with ERR_ROCE_CLOSED. */
  close(): void {
    this.#link.close();
    this.#waiter?.reject(new RoceError('ERR_ROCE_CLOSED', 'the writer is closed'));
  }

  #allocate(): Promise<Allocated> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      this.#link.send({ type: 'ALLOC' });
    });
  }

  #done(post: (onDone: () => void) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve: () => {}, reject };
      post(() => {
        this.#waiter = undefined;
        resolve();
      });
    });
  }
}

interface Allocated {
  readonly id: number;
  readonly bytes: number;
  readonly rkey: number;
  readonly remoteAddr: bigint;
}
