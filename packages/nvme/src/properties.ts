/**
 * Properties of a controller: what a host reads and writes by Property Get and Property Set (NVMe base specification
 * 2.0 §3.1.3).
 */

import { PROPERTY } from './opcodes.js';
import { refuse, STATUS } from './status.js';

export const QUEUE_ENTRIES_MAX = 128;
export const NVME_VERSION = 0x0001_0400;

/** Contiguous queues (always, over fabrics), 7.5 s to get ready, the NVM command set, pages of 4 KiB. */
const CAP = BigInt(QUEUE_ENTRIES_MAX - 1) | (1n << 16n) | (15n << 24n) | (1n << 37n);

const CC_ENABLE = 1;
const CC_SHUTDOWN = 0b11 << 14;
const CC_ENTRY_SIZES = 0xff << 16;
/** IOSQES 2^6, IOCQES 2^4 bytes. */
const ENTRY_SIZES_OF_FABRICS = 0x46 << 16;
const CSTS_READY = 1;
const CSTS_SHUTDOWN_DONE = 2 << 2;

export class Properties {
  #configuration = 0;
  #status = 0;
  readonly #onReset: () => void;

  constructor(onReset: () => void) {
    this.#onReset = onReset;
  }

  get takesQueues(): boolean {
    return (
      (this.#status & (CSTS_READY | CSTS_SHUTDOWN_DONE)) === CSTS_READY &&
      (this.#configuration & CC_ENTRY_SIZES) === ENTRY_SIZES_OF_FABRICS
    );
  }

  get isReady(): boolean {
    return (this.#status & CSTS_READY) !== 0;
  }

  get(offset: number, bytes: 4 | 8): bigint {
    if (offset === PROPERTY.CAP && bytes === 8) return CAP;
    if (bytes === 4) {
      if (offset === PROPERTY.VS) return BigInt(NVME_VERSION);
      if (offset === PROPERTY.CC) return BigInt(this.#configuration);
      if (offset === PROPERTY.CSTS) return BigInt(this.#status);
    }
    throw refuse(STATUS.INVALID_FIELD);
  }

  set(offset: number, bytes: 4 | 8, value: bigint): void {
    if (offset !== PROPERTY.CC || bytes !== 4) throw refuse(STATUS.INVALID_FIELD);
    const before = this.#configuration;
    const configuration = Number(value & 0xffff_ffffn);
    this.#configuration = configuration;
    if ((configuration & CC_ENABLE) !== 0 && (before & CC_ENABLE) === 0) this.#status = CSTS_READY;
    if ((configuration & CC_ENABLE) === 0 && (before & CC_ENABLE) !== 0) {
      this.#status = 0;
      this.#onReset();
    }
    if ((configuration & CC_SHUTDOWN) !== 0 && (before & CC_SHUTDOWN) === 0) this.#status |= CSTS_SHUTDOWN_DONE;
    if ((configuration & CC_SHUTDOWN) === 0) this.#status &= ~CSTS_SHUTDOWN_DONE;
  }
}
