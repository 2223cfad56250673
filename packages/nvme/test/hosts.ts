/** Hosts that differ by their host IDs, each with an admin queue and an I/O queue; commands of reservations. */

import { ADMIN, IO, LOG } from '../src/opcodes.js';
import { RawQueue } from './raw-queue.js';
import type { TcpWorld } from './world.js';

export interface ReportedHost {
  hostId: number;
  key: number;
  isHolder: boolean;
}

/** A host whose ID is 16 times a byte. */
export class Host {
  readonly number: number;
  readonly admin: RawQueue;
  readonly io: RawQueue;

  private constructor(number: number, admin: RawQueue, io: RawQueue) {
    this.number = number;
    this.admin = admin;
    this.io = io;
  }

  static async connect(world: TcpWorld, number: number, portId?: number, from?: string): Promise<Host> {
    const hostId = Buffer.alloc(16, number);
    const admin = await RawQueue.admin(world, { hostId }, portId, from);
    const io = await RawQueue.open(world, portId, from);
    await io.connect({ qid: 1, cntlid: admin.cntlid, hostId });
    return new Host(number, admin, io);
  }

  /** Registers a key; with `old` it replaces that one. */
  register(key: number, old?: number, flags = 0): Promise<number> {
    return this.#keys(IO.RESERVATION_REGISTER, (old === undefined ? 0 : 2) | flags, old ?? 0, key);
  }

  unregister(key: number, flags = 0): Promise<number> {
    return this.#keys(IO.RESERVATION_REGISTER, 1 | flags, key, 0);
  }

  acquire(key: number, type: number): Promise<number> {
    return this.#keys(IO.RESERVATION_ACQUIRE, type << 8, key, 0);
  }

  preempt(key: number, preempted: number, type: number, action = 1): Promise<number> {
    return this.#keys(IO.RESERVATION_ACQUIRE, action | (type << 8), key, preempted);
  }

  release(key: number, type: number): Promise<number> {
    return this.#keys(IO.RESERVATION_RELEASE, type << 8, key);
  }

  clear(key: number): Promise<number> {
    return this.#keys(IO.RESERVATION_RELEASE, 1, key);
  }

  async report(): Promise<{ generation: number; type: number; persists: boolean; hosts: ReportedHost[] }> {
    const into = Buffer.alloc(1024);
    await this.io.send({ opcode: IO.RESERVATION_REPORT, nsid: 1, dwords: [into.length / 4 - 1, 1], into });
    const hosts = Array.from({ length: into.readUInt16LE(5) }, (_, i) => {
      const entry = into.subarray(64 * (i + 1));
      return { hostId: entry[16], key: Number(entry.readBigUInt64LE(8)), isHolder: entry[2] === 1 };
    });
    return { generation: into.readUInt32LE(0), type: into[4], persists: into[9] === 1, hosts };
  }

  /** Status of a write of 4 KiB at the start. */
  write(byte = this.number): Promise<number> {
    return this.io.status({ opcode: IO.WRITE, nsid: 1, dwords: [0, 0, 7], out: Buffer.alloc(4096, byte) });
  }

  read(): Promise<number> {
    return this.io.status({ opcode: IO.READ, nsid: 1, dwords: [0, 0, 7], into: Buffer.alloc(4096) });
  }

  /** Reads a log page from its start. */
  async log(id: number, bytes: number): Promise<Buffer> {
    const into = Buffer.alloc(bytes);
    await this.admin.send({ opcode: ADMIN.GET_LOG_PAGE, dwords: [id | ((bytes / 4 - 1) << 16)], into });
    return into;
  }

  /** The oldest notification of a reservation: kind, and how many more there are; kind 0 is none. */
  async notice(): Promise<[kind: number, more: number]> {
    const page = await this.log(LOG.RESERVATION_NOTIFICATION, 64);
    return [page[8], page[9]];
  }

  #keys(opcode: number, action: number, ...keys: number[]): Promise<number> {
    const out = Buffer.alloc(8 * keys.length);
    keys.forEach((key, i) => {
      out.writeBigUInt64LE(BigInt(key), 8 * i);
    });
    return this.io.status({ opcode, nsid: 1, dwords: [action >>> 0], out });
  }
}
