import { RpcError } from '@rocev2/rpc';
import { crc32c } from 'rocev2/internal/core';
import type { ExtentStore } from '../extent-store.js';
import type { Manager, NodeMethods, NodePlace, Nodes } from '../messages.js';
import { areBlocksIntact, BLOCK_BYTES, blockCrcs } from '../record.js';
import type { Replica } from '../replica.js';
import { type CodedReader, codedExtent } from './coded-reader.js';
import type { Combiner } from './combiner.js';
import { erasureCode } from './erasure-code.js';
import { type FragmentId, fragmentBlocks, piecesOf } from './layout.js';

const COLUMN_BLOCKS = 64;
const FETCH_BYTES = 1 << 20;
const FINISH_CALLS = 6;

export interface FragmentKeeperParts {
  readonly store: ExtentStore;
  readonly nodes: Nodes;
  readonly manager: Manager;
  readonly combiner: Combiner;
  readonly reader: CodedReader;
  readonly callMs: number;
}

export type FragmentMethods = Pick<
  NodeMethods,
  'encode' | 'writeFragment' | 'finishFragment' | 'readFragment' | 'rebuild' | 'mendFragment'
>;

export class FragmentKeeper {
  readonly handlers: {
    readonly [M in keyof FragmentMethods]: (request: FragmentMethods[M][0]) => Promise<FragmentMethods[M][1]>;
  };
  readonly #parts: FragmentKeeperParts;

  constructor(parts: FragmentKeeperParts) {
    this.#parts = parts;
    const { fragments } = parts.store;
    this.handlers = {
      encode: async (request) => {
        await this.#encode(request);
        return {};
      },
      writeFragment: async ({ first, data, crcs, ...state }) => {
        await fragments.write(state, first, bufferOf(data), Uint32Array.from(crcs));
        return {};
      },
      finishFragment: async (id) => {
        await fragments.finish(id);
        return {};
      },
      readFragment: async ({ first, count, ...id }) => {
        const { data, crcs } = await fragments.get(id).read(first, count);
        return { data, crcs: [...crcs] };
      },
      rebuild: async (request) => {
        await this.#rebuild(request);
        return {};
      },
      mendFragment: async (id) => ({ mended: (await this.mend(id)).mended }),
    };
  }

  /**
   * The replica is read twice: first its records are checked against their CRCs, which gives the CRCs of the blocks of
   * data fragments; then the encoded blocks are checked against these.
   */
  async #encode({ extent, making, code: name, length, of, targets }: NodeMethods['encode'][0]): Promise<void> {
    const { store, nodes, combiner, callMs } = this.#parts;
    const code = erasureCode(name);
    const replica = store.replica(extent);
    if (replica.state.sealed !== length || targets.length !== code.total)
      throw new RpcError('INVALID', `extent ${extent} is sealed at ${replica.state.sealed}, and not at ${length}`);
    const crcs = await this.#checkedCrcs(replica, length);
    const shape = { code: name, length, of };
    const each = fragmentBlocks(shape);
    const sums = code.rows.slice(code.data);
    for (const { first, count } of piecesOf(0, each, COLUMN_BLOCKS)) {
      const data = Array.from({ length: code.data }, async (_, k) => {
        const at = k * each + first;
        const bytes = Buffer.alloc(count * BLOCK_BYTES);
        (await replica.readPlain(at * BLOCK_BYTES, bytes.length)).copy(bytes);
        if (!areBlocksIntact(bytes, crcs.subarray(at, at + count)))
          throw new RpcError('DAMAGED', `extent ${extent} changes here while it is read`);
        return bytes;
      });
      const sources = await Promise.all(data);
      const pieces = [...sources, ...(await combiner.combine(sums, sources))];
      const write = (place: NodePlace, fragment: number) => {
        const at = fragment * each + first;
        const known = fragment < code.data ? crcs.subarray(at, at + count) : blockCrcs(pieces[fragment]);
        const piece = { first, data: pieces[fragment], crcs: [...known] };
        return nodes.call(place, 'writeFragment', { extent, fragment, making, ...shape, ...piece }, callMs);
      };
      await Promise.all(targets.map(write));
    }
    const finish = (place: NodePlace, fragment: number) =>
      nodes.call(place, 'finishFragment', { extent, fragment, making }, FINISH_CALLS * callMs);
    await Promise.all(targets.map(finish));
  }

  async #checkedCrcs(replica: Replica, length: number): Promise<Uint32Array> {
    const crcs = new Uint32Array(Math.ceil(length / BLOCK_BYTES) + MOST_ZERO_BLOCKS);
    const block = Buffer.alloc(BLOCK_BYTES);
    crcs.fill(crc32c(block));
    for (let offset = 0; offset < length; ) {
      const records = await replica.fetch(offset, FETCH_BYTES);
      if (records.length === 0) throw new RpcError('MISSING', `extent ${replica.extent} ends at ${offset} here`);
      for (let at = 0; at < records.length; ) {
        const into = (offset + at) % BLOCK_BYTES;
        const copied = records.copy(block, into, at);
        at += copied;
        if (into + copied === BLOCK_BYTES) crcs[(offset + at) / BLOCK_BYTES - 1] = crc32c(block);
      }
      offset += records.length;
    }
    const rest = length % BLOCK_BYTES;
    if (rest > 0) crcs[Math.floor(length / BLOCK_BYTES)] = crc32c(block.fill(0, rest));
    return crcs;
  }

  async #rebuild({ fragments, ...state }: NodeMethods['rebuild'][0]): Promise<void> {
    const { store, reader } = this.#parts;
    const coded = { extent: state.extent, code: state.code, length: state.length, fragments };
    for (const { first, count } of piecesOf(0, fragmentBlocks(state), COLUMN_BLOCKS)) {
      const data = await reader.reconstruct(coded, state.fragment, first, count);
      await store.fragments.write(state, first, data, blockCrcs(data));
    }
    await store.fragments.finish(state);
  }

  async mend(id: FragmentId): Promise<{ readonly damaged: number; readonly mended: number }> {
    const { store, manager, reader, callMs } = this.#parts;
    let damaged = 0;
    let mended = 0;
    let coded: ReturnType<typeof codedExtent>;
    for await (const { first, count } of store.fragments.get(id).damaged()) {
      damaged++;
      coded ??= codedExtent(await manager.call('locateExtent', { extent: id.extent }, callMs));
      if (coded === undefined) break;
      const data = await reader.reconstruct(coded, id.fragment, first, count);
      await store.fragments.mend(id, first, data, blockCrcs(data));
      await store.fragments.get(id).read(first, count);
      mended++;
    }
    return { damaged, mended };
  }
}

/** Blocks of zeros after the end of an extent: fewer than data fragments. */
const MOST_ZERO_BLOCKS = 16;

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
