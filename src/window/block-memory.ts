import { shown } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';

export const POOL_BLOCKS_MAX = 65_535;
const BLOCK_BYTES_MAX = 2 ** 31 - 1;

interface Segment {
  readonly firstId: number;
  readonly count: number;
  readonly region: MemoryRegion;
}

export function checkPool(blocks: number, blockBytes: number): void {
  if (Number.isInteger(blocks) && blocks >= 1 && Number.isInteger(blockBytes) && blockBytes >= 1) {
    if (blockBytes <= BLOCK_BYTES_MAX && blocks <= POOL_BLOCKS_MAX) return;
  }
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `a pool cannot have ${shown(blocks)} blocks of ${shown(blockBytes)} bytes`,
    'give 1 to 65535 blocks of 1 byte to 2 GiB',
  );
}

export class BlockMemory {
  readonly blockBytes: number;
  readonly #pd: ProtectionDomain;
  readonly #access: number;
  readonly #segments: Segment[] = [];
  #count = 0;

  constructor(pd: ProtectionDomain, blockBytes: number, access: number) {
    this.blockBytes = blockBytes;
    this.#pd = pd;
    this.#access = access;
  }

  get count(): number {
    return this.#count;
  }

  async add(count: number): Promise<Segment> {
    const region = await this.#pd.regMr(count * this.blockBytes, this.#access);
    const segment = { firstId: this.#count + 1, count, region };
    this.#segments.push(segment);
    this.#count += count;
    return segment;
  }

  locate(id: number): { readonly region: MemoryRegion; readonly offset: number } | undefined {
    const segment = this.#segments.find(({ firstId, count }) => id >= firstId && id < firstId + count);
    return segment && { region: segment.region, offset: (id - segment.firstId) * this.blockBytes };
  }

  async close(): Promise<void> {
    for (const { region } of this.#segments) await region.close();
  }
}
