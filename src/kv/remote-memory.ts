/** The region of an owner, read over a connection into lanes: places that are registered once, one for each READ in flight. */

import type { Connection } from '../cm/connection.js';
import { Permits } from '../core/permits.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { RegionPlace } from './protocol.js';
import type { RemoteMemory } from './remote-table.js';

/** Memory of all lanes of a connection, unless one READ needs more. */
const LANES_BYTES = 4 << 20;
const LANES_MAX = 64;

/** Reads the memory of the peer. */
export class ConnectionMemory implements RemoteMemory {
  readonly #connection: Connection;
  readonly #region: MemoryRegion;
  readonly #remote: { readonly addr: bigint; readonly rkey: number };
  readonly #laneBytes: number;
  readonly #free: number[];
  readonly #places: Permits;

  private constructor(connection: Connection, region: MemoryRegion, { addr, rkey }: RegionPlace, laneBytes: number) {
    this.#connection = connection;
    this.#region = region;
    this.#remote = { addr: BigInt(addr), rkey };
    this.#laneBytes = laneBytes;
    const lanes = region.length / laneBytes;
    this.#free = Array.from({ length: lanes }, (_, k) => k);
    this.#places = new Permits(lanes);
  }

  /** `readBytesMax` is the longest READ. */
  static async open(connection: Connection, place: RegionPlace, readBytesMax: number): Promise<ConnectionMemory> {
    const laneBytes = Math.ceil(readBytesMax / 64) * 64;
    const lanes = Math.max(1, Math.min(LANES_MAX, Math.floor(LANES_BYTES / laneBytes)));
    return new ConnectionMemory(connection, await connection.register(lanes * laneBytes), place, laneBytes);
  }

  /** Waits for a lane. Rejects when the connection fails. */
  async read<T>(offset: number, length: number, use: (bytes: Buffer) => T): Promise<T> {
    await this.#places.take(1);
    const lane = this.#free.pop()!;
    try {
      const { addr, rkey } = this.#remote;
      const at = lane * this.#laneBytes;
      await this.#connection.post({
        opcode: 'RDMA_READ',
        sges: [this.#region.sge(at, length)],
        remoteAddr: addr + BigInt(offset),
        rkey,
      });
      return use(this.#region.bytes.subarray(at, at + length));
    } finally {
      this.#free.push(lane);
      this.#places.give(1);
    }
  }
}
