/** Memory windows: remote access to a part of a region, granted and withdrawn by work requests. */

import type { ProtectionDomain } from './protection-domain.js';
import { Resource } from './resource.js';

/** A memory window (`ibv_mw`), made by {@link ProtectionDomain.allocMw}. */
export class MemoryWindow extends Resource {
  override readonly closeRank = 1;
  /** The number that the NIC gave it. */
  readonly handle: number;
  /** 1: for every queue pair of the domain. 2: for the one that bound it, and it can be invalidated. */
  readonly type: 1 | 2;
  #rkey: number;
  readonly #pd: ProtectionDomain;

  /** @internal */
  constructor(pd: ProtectionDomain, handle: number, type: 1 | 2, rkey: number) {
    super(pd);
    this.#pd = pd;
    this.handle = handle;
    this.type = type;
    this.#rkey = rkey;
  }

  /** The key of the current, or last, binding. */
  get rkey(): number {
    return this.#rkey;
  }

  /**
   * The key for the next binding: same index, next low 8 bits, so that the old key stops working. Call once per
   * BIND_MW.
   */
  nextRkey(): number {
    this.#rkey = ((this.#rkey & ~0xff) | ((this.#rkey + 1) & 0xff)) >>> 0;
    return this.#rkey;
  }

  protected override async release(): Promise<void> {
    await this.#pd.device.command('deallocMw', { mw: this.handle });
  }
}
