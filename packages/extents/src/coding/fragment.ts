/**
 * A fragment of a sealed extent in a file: a head as a replica's, the bytes, then a CRC-32C for each 4 KiB block. It is
 * written once, read back as a whole before it counts, and never changed, except that damaged blocks are replaced by
 * the same bytes.
 */

import { RpcError } from '@rocev2/rpc';
import { DurableValue, SLOTS_BYTES } from '../durable-value.js';
import type { ExtentFile } from '../extent-files.js';
import { areBlocksIntact, BLOCK_BYTES } from '../record.js';
import type { Blocks } from '../replica.js';
import { type FragmentId, type FragmentShape, fragmentBlocks, fragmentBytes, piecesOf } from './layout.js';

export interface FragmentState extends FragmentId, FragmentShape {
  readonly isMaking?: true;
}

const CRC_BYTES = 4;
const CHECKED_BLOCKS = 64;

export class Fragment {
  idle = 0;
  readonly #file: ExtentFile;
  readonly #state: DurableValue<FragmentState>;
  readonly #crcs: Array<number | undefined> = [];

  private constructor(file: ExtentFile, state: DurableValue<FragmentState>) {
    this.#file = file;
    this.#state = state;
  }

  static async create(file: ExtentFile, value: FragmentState): Promise<Fragment> {
    const state = await DurableValue.load<FragmentState>(file);
    await state.store({ ...value, isMaking: true });
    return new Fragment(file, state);
  }

  static async recover(file: ExtentFile): Promise<Fragment | undefined> {
    const state = await DurableValue.load<FragmentState>(file);
    return state.value === undefined || state.value.isMaking === true ? undefined : new Fragment(file, state);
  }

  get state(): FragmentState {
    return this.#state.value!;
  }

  get bytes(): number {
    return fragmentBytes(this.state);
  }

  async write(first: number, data: Buffer, crcs: Uint32Array): Promise<void> {
    this.#check(first, crcs.length);
    if (data.length !== crcs.length * BLOCK_BYTES || !areBlocksIntact(data, crcs))
      throw new RpcError('DAMAGED', `blocks of ${this.#name()} did not arrive intact`);
    if (this.state.isMaking !== true) return; // The same came before.
    this.idle = 0;
    await this.#file.write(SLOTS_BYTES + first * BLOCK_BYTES, data);
    for (const [k, crc] of crcs.entries()) this.#crcs[first + k] = crc;
  }

  async finish(): Promise<void> {
    if (this.state.isMaking !== true) return;
    const blocks = fragmentBlocks(this.state);
    const table = Buffer.alloc(blocks * CRC_BYTES);
    for (let block = 0; block < blocks; block++) {
      const crc = this.#crcs[block];
      if (crc === undefined) throw new RpcError('INVALID', `block ${block} of ${this.#name()} is missing`);
      table.writeUInt32LE(crc, block * CRC_BYTES);
    }
    await this.#file.write(this.#tableAt(0), table);
    await this.#file.sync();
    for await (const { first } of this.damaged())
      throw new RpcError('DAMAGED', `block ${first} of ${this.#name()} is not as it was written`);
    const { isMaking: _over, ...state } = this.state;
    await this.#state.store(state);
    this.#crcs.length = 0;
  }

  async read(first: number, count: number): Promise<Blocks> {
    this.#check(first, count);
    const { data, crcs } = await this.#read(first, count);
    if (!areBlocksIntact(data, crcs)) throw new RpcError('DAMAGED', `${this.#name()} is damaged here`);
    return { data, crcs };
  }

  async #read(first: number, count: number): Promise<Blocks> {
    const data = await this.#file.read(SLOTS_BYTES + first * BLOCK_BYTES, count * BLOCK_BYTES);
    const table = await this.#file.read(this.#tableAt(first), count * CRC_BYTES);
    const crcs = Uint32Array.from({ length: count }, (_, k) =>
      table.length < (k + 1) * CRC_BYTES ? 0 : table.readUInt32LE(k * CRC_BYTES),
    );
    return { data: filledUp(data, count * BLOCK_BYTES), crcs };
  }

  async *damaged(): AsyncGenerator<{ readonly first: number; readonly count: number }, void, undefined> {
    for (const { first, count } of piecesOf(0, fragmentBlocks(this.state), CHECKED_BLOCKS)) {
      const { data, crcs } = await this.#read(first, count);
      for (let k = 0; k < count; k++) {
        const block = data.subarray(k * BLOCK_BYTES, (k + 1) * BLOCK_BYTES);
        if (!areBlocksIntact(block, crcs.subarray(k, k + 1))) yield { first: first + k, count: 1 };
      }
    }
  }

  async mend(first: number, data: Buffer, crcs: Uint32Array): Promise<void> {
    this.#check(first, crcs.length);
    const table = Buffer.alloc(crcs.length * CRC_BYTES);
    for (const [k, crc] of crcs.entries()) table.writeUInt32LE(crc, k * CRC_BYTES);
    await this.#file.write(SLOTS_BYTES + first * BLOCK_BYTES, data);
    await this.#file.write(this.#tableAt(first), table);
    await this.#file.sync();
  }

  #tableAt(block: number): number {
    return SLOTS_BYTES + this.bytes + block * CRC_BYTES;
  }

  #check(first: number, count: number): void {
    const blocks = fragmentBlocks(this.state);
    if (first < 0 || count < 1 || first + count > blocks)
      throw new RpcError('INVALID', `${this.#name()} has ${blocks} blocks`);
  }

  #name(): string {
    return `fragment ${this.state.fragment} of extent ${this.state.extent}`;
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

/** With zeros instead of the truncated part; they have no valid CRC. */
function filledUp(data: Buffer, length: number): Buffer {
  return data.length === length ? data : Buffer.concat([data], length);
}
