/**
 * Memory for the data of commands, which all hosts of a transport share by turns. A connection whose host neither takes
 * its data nor sends what was asked for ends when others wait.
 */

import { FairQueue, RoceError } from 'rocev2/internal/core';
import { IpAddress } from 'rocev2/internal/packet';
import {
  type BufferLease,
  BufferPool,
  type BufferPoolOptions,
  fairLease,
  POOL_SHARE,
  type Slab,
} from 'rocev2/internal/storage-rpc';

/** Of the hosts at one address. */
const ADDRESS_PART = 1 / 2;

export interface MemoryUser {
  /** Address of the host. */
  readonly remote: string;
  /** Since when the host has not continued; Infinity: nothing of it is in flight. */
  readonly stuckSinceNs: number;
  fail(error: Error): void;
}

export interface ClientMemory<S extends Slab> {
  lease(bytes: number): BufferLease<S> | Promise<BufferLease<S>>;
  /** What it has on loan is still to be released. */
  leave(): void;
}

export class TargetMemory<S extends Slab> {
  readonly pool: BufferPool<S>;
  readonly #queue: FairQueue;

  constructor(options: BufferPoolOptions<S> & { readonly bytesMax: number }) {
    const { clock, bytesMax: poolBytesMax } = options;
    this.pool = new BufferPool(options);
    const bytesMax = poolBytesMax * POOL_SHARE;
    this.#queue = new FairQueue({ clock, bytesMax, groupBytesMax: bytesMax * ADDRESS_PART });
  }

  get heldBytes(): number {
    return this.#queue.heldBytes;
  }

  join(user: MemoryUser): ClientMemory<S> {
    const onStuck = () => user.fail(new RoceError('ERR_ROCE_LIMIT', 'the host keeps memory that others wait for'));
    const client = this.#queue.join(
      { stuckSinceNs: () => user.stuckSinceNs, onStuck },
      IpAddress.parse(user.remote).network,
    );
    return { lease: (bytes) => fairLease(client, this.pool, bytes), leave: () => client.leave() };
  }

  close(): Promise<void> {
    this.#queue.close();
    return this.pool.close();
  }
}
