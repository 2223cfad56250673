/** The region of an owner, read over a connection into scratch buffers. */

import { type Connection, ScratchBufferPool } from 'rocev2/internal/cm';
import type { StoreRegion } from './protocol.js';
import type { RemoteMemory } from './remote-table.js';

/** Memory of all buffers of a connection, unless one READ needs more. */
const SCRATCH_BYTES = 4 << 20;
const SCRATCH_BUFFERS_MAX = 64;

export class ConnectionMemory implements RemoteMemory {
  readonly #connection: Connection;
  readonly #pool: ScratchBufferPool;
  readonly #remote: { readonly addr: bigint; readonly rkey: number };

  private constructor(connection: Connection, pool: ScratchBufferPool, { addr, rkey }: StoreRegion) {
    this.#connection = connection;
    this.#pool = pool;
    this.#remote = { addr: BigInt(addr), rkey };
  }

  static async open(connection: Connection, place: StoreRegion, readBytesMax: number): Promise<ConnectionMemory> {
    const count = Math.max(1, Math.min(SCRATCH_BUFFERS_MAX, Math.floor(SCRATCH_BYTES / readBytesMax)));
    return new ConnectionMemory(connection, await ScratchBufferPool.open(connection, readBytesMax, count), place);
  }

  /** Waits for a buffer. Rejects when the connection fails. */
  read<T>(offset: number, length: number, use: (bytes: Buffer) => T): Promise<T> {
    const { addr, rkey } = this.#remote;
    const remoteAddr = addr + BigInt(offset);
    return this.#pool.use((region, at) =>
      this.#connection
        .post({ opcode: 'RDMA_READ', sges: [region.sge(at, length)], remoteAddr, rkey })
        .then(() => use(region.bytes.subarray(at, at + length))),
    );
  }
}
