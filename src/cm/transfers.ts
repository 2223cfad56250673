/**
 * A registered region, or a slice of one, is used in place. Other bytes are registered for the time of one operation,
 * and copied if the NIC cannot reach them.
 */

import { RoceError } from '../core/errors.js';
import { type CancellationState, type WaitDeadline, waitFor } from '../core/wait.js';
import { Access } from '../verbs/access.js';
import type { RdmaDevice } from '../verbs/device.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import { bytesOf, type Memory, sliceOf } from './memory.js';
import type { Operation, Operations } from './operations.js';

export type Elements = readonly [ReturnType<MemoryRegion['sge']>];

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
   * One operation on `memory`, which the caller has checked (`checkMemory`), until the caller's deadline. An operation
   * that has begun by then continues to its end. Throws ERR_ROCE_INVALID_ARGUMENT for a region that the NIC would have
   * to write but may not, ERR_ROCE_CONFLICT for a region of another protection domain, ERR_ROCE_CLOSED for a closed
   * region.
   */
  async run(
    memory: Memory,
    deadline: WaitDeadline | undefined,
    operation: (sges: Elements) => Operation,
  ): Promise<void> {
    if (this.#operations.failure !== undefined) throw this.#operations.failure;
    const slice = sliceOf(memory);
    if (slice === undefined) {
      await waitFor(deadline, (cancellation) => this.#registered(bytesOf(memory), operation, cancellation));
      return;
    }
    const { region, offset, length } = slice;
    const request = operation([region.sge(offset, length)]);
    this.#checkUsable(region, request);
    await waitFor(deadline, (cancellation) => this.#operations.run(request, cancellation));
  }

  #checkUsable(region: MemoryRegion, { opcode }: Operation): void {
    if (region.isClosed) throw new RoceError('ERR_ROCE_CLOSED', 'the region is closed');
    if (region.pd !== this.#pd) {
      throw new RoceError(
        'ERR_ROCE_CONFLICT',
        'the region is not registered for this connection',
        'register the memory with connection.register() of this very connection; the same memory may be registered for several',
      );
    }
    if (opcode === 'RDMA_READ' && (region.access & Access.LOCAL_WRITE) === 0) {
      throw new RoceError(
        'ERR_ROCE_INVALID_ARGUMENT',
        'the NIC may not write into this region, as a READ does',
        'register it with Access.LOCAL_WRITE',
      );
    }
  }

  async #registered(
    data: Uint8Array,
    operation: (sges: Elements) => Operation,
    cancellation: CancellationState,
  ): Promise<void> {
    const { scratch } = this.#device;
    const copy = this.#device.reaches(data) ? undefined : scratch.take(data.length);
    copy?.set(data);
    const mr = await this.#pd.regMr(copy ?? data, Access.LOCAL_WRITE);
    try {
      const request = operation([mr.sge()]);
      await this.#operations.run(request, cancellation);
      // If possible, memory of a caller that no longer waits is not accessed.
      if (copy !== undefined && request.opcode === 'RDMA_READ' && cancellation.error === undefined) data.set(copy);
    } finally {
      await mr.close();
      if (copy !== undefined) scratch.give(copy);
    }
  }
}
