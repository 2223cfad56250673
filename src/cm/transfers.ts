/** Operations on memory of the caller's: registered for the time of one operation, and copied where the NIC cannot reach it. */

import { RoceError } from '../core/errors.js';
import { type GivenUp, type Patience, waitFor } from '../core/wait.js';
import { Access } from '../verbs/access.js';
import type { RdmaDevice } from '../verbs/device.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import type { Operation, Operations } from './operations.js';

/** One scatter/gather element: the whole of what is registered. */
export type Elements = readonly [ReturnType<MemoryRegion['sge']>];

/** Registers, posts, and takes back. */
export class Transfers {
  readonly #device: RdmaDevice;
  readonly #pd: ProtectionDomain;
  readonly #operations: Operations;

  constructor(device: RdmaDevice, pd: ProtectionDomain, operations: Operations) {
    this.#device = device;
    this.#pd = pd;
    this.#operations = operations;
  }

  /**
   * One operation on `data`, as long as the caller has patience; what has begun by then ends in its own time. Throws ERR_ROCE_INVALID_ARGUMENT where
   * `data` is not bytes.
   */
  async run(data: Uint8Array, patience: Patience | undefined, operation: (sges: Elements) => Operation): Promise<void> {
    if (!(data instanceof Uint8Array)) {
      throw new RoceError(
        'ERR_ROCE_INVALID_ARGUMENT',
        `data is bytes, not a ${typeof data}`,
        'pass a Buffer or Uint8Array: Buffer.from(text)',
      );
    }
    if (this.#operations.failure !== undefined) throw this.#operations.failure;
    await waitFor(patience, (givenUp) => this.#perform(data, operation, givenUp));
  }

  /** Registers `data` for the time of one operation. */
  async #perform(data: Uint8Array, operation: (sges: Elements) => Operation, givenUp: GivenUp): Promise<void> {
    const { scratch } = this.#device;
    // What the NIC cannot reach goes through memory that it can.
    const copy = this.#device.reaches(data) ? undefined : scratch.take(data.length);
    copy?.set(data);
    const mr = await this.#pd.regMr(copy ?? data, Access.LOCAL_WRITE);
    try {
      const request = operation([mr.sge()]);
      await this.#operations.run(request, givenUp);
      // Memory of a caller that waits no more is left alone where that is possible.
      if (copy !== undefined && request.opcode === 'RDMA_READ' && givenUp.error === undefined) data.set(copy);
    } finally {
      await mr.close();
      if (copy !== undefined) scratch.give(copy);
    }
  }
}
