/** The region of an owner, read over a connection into lanes. */

import { type Connection, Lanes } from 'rocev2/internal/cm';
import type { KvTableBuffer } from './protocol.js';
import type { RemoteMemory } from './remote-table.js';

/** Memory of all lanes of a connection, unless one READ needs more. */
const LANES_BYTES = 4 << 20;
const LANES_MAX = 64;

/** Reads the memory of the peer. */
export class ConnectionMemory implements RemoteMemory {
  readonly #connection: Connection;
  readonly #lanes: Lanes;
  readonly #remote: { readonly addr: bigint; readonly rkey: number };

  private constructor(connection: Connection, lanes: Lanes, { addr, rkey }: KvTableBuffer) {
    this.#connection = connection;
    this.#lanes = lanes;
    this.#remote = { addr: BigInt(addr), rkey };
  }

  /** `readBytesMax` is the longest READ. */
  static async open(connection: Connection, place: KvTableBuffer, readBytesMax: number): Promise<ConnectionMemory> {
    const count = Math.max(1, Math.min(LANES_MAX, Math.floor(LANES_BYTES / readBytesMax)));
    return new ConnectionMemory(connection, await Lanes.open(connection, readBytesMax, count), place);
  }

  /** Waits for a lane. Rejects when the connection fails. */
  read<T>(offset: number, length: number, use: (bytes: Buffer) => T): Promise<T> {
    const { addr, rkey } = this.#remote;
    const remoteAddr = addr + BigInt(offset);
    return this.#lanes.use((region, at) =>
      this.#connection
        .post({ opcode: 'RDMA_READ', sges: [region.sge(at, length)], remoteAddr, rkey })
        .then(() => use(region.bytes.subarray(at, at + length))),
    );
  }
}
