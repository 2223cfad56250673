/** Words of 64 bits in the memory of an owner, and what others do with them by one-sided operations. */

import {
  type Connection,
  type Elements,
  type Operation,
  type RemoteTarget,
  ScratchBufferPool,
} from 'rocev2/internal/cm';
import type { Clock } from 'rocev2/internal/core';

/** Atomics work on 64 bits (IBTA vol. 1 §9.4.5). */
export const WORD_BYTES = 8;
/** Words that one READ takes at most. */
export const READ_WORDS_MAX = 128;
/** Operations of one connection at a time. */
const BUFFERS = 64;

/** The words of an owner. Offsets are bytes in its region, multiples of 8. All calls reject when the way to the owner has ended. */
export interface RemoteWords {
  /** The clock of this side. */
  readonly clock: Clock;
  /** Adds to a word, modulo 2^64. Resolves to the value before (IBTA vol. 1 §9.4.5, FetchAdd). */
  fetchAdd(offset: number, add: bigint): Promise<bigint>;
  /** Stores `desired` where the word equals `expected`. Resolves to the value before (IBTA vol. 1 §9.4.5, CmpSwap). */
  compareSwap(offset: number, expected: bigint, desired: bigint): Promise<bigint>;
  /** Reads up to {@link READ_WORDS_MAX} words that stand side by side; each of them is one that stood there, not all at one time. */
  read(offset: number, count: number): Promise<bigint[]>;
  /** Writes bytes; `data` must not change until the promise settles. */
  write(offset: number, data: Uint8Array): Promise<void>;
  /** Calls `onEnd` once, when the way to the owner has ended. The result takes that back. */
  whenEnded(onEnd: () => void): () => void;
}

/** The words of the peer of a connection. */
export class ConnectionWords implements RemoteWords {
  /** Of the device. */
  readonly clock: Clock;
  readonly #connection: Connection;
  readonly #pool: ScratchBufferPool;
  readonly #start: RemoteTarget;
  readonly #onEnd = new Set<() => void>();

  private constructor(connection: Connection, pool: ScratchBufferPool, start: RemoteTarget) {
    this.clock = connection.device.clock;
    this.#connection = connection;
    this.#pool = pool;
    this.#start = start;
    void this.#watchEnd();
  }

  /** `start` is the first byte of the owner's region. */
  static async open(connection: Connection, start: RemoteTarget): Promise<ConnectionWords> {
    const pool = await ScratchBufferPool.open(connection, READ_WORDS_MAX * WORD_BYTES, BUFFERS);
    return new ConnectionWords(connection, pool, start);
  }

  fetchAdd(offset: number, add: bigint): Promise<bigint> {
    return this.#word(
      (target) => ({ opcode: 'ATOMIC_FETCH_AND_ADD', add: BigInt.asUintN(64, add), ...target }),
      offset,
    );
  }

  compareSwap(offset: number, expected: bigint, desired: bigint): Promise<bigint> {
    return this.#word(
      (target) => ({ opcode: 'ATOMIC_CMP_AND_SWP', compare: expected, swap: desired, ...target }),
      offset,
    );
  }

  read(offset: number, count: number): Promise<bigint[]> {
    return this.#words((target) => ({ opcode: 'RDMA_READ', ...target }), offset, count);
  }

  write(offset: number, data: Uint8Array): Promise<void> {
    return this.#connection.writeClaimed(data, this.#start.remoteAddr + BigInt(offset), this.#start.rkey);
  }

  async #word(operation: (target: Target) => Operation, offset: number): Promise<bigint> {
    const [before] = await this.#words(operation, offset, 1);
    return before;
  }

  #words(operation: (target: Target) => Operation, offset: number, count: number): Promise<bigint[]> {
    return this.#pool.use(async (region, at) => {
      const { rkey } = this.#start;
      const remoteAddr = this.#start.remoteAddr + BigInt(offset);
      await this.#connection.post(operation({ sges: [region.sge(at, count * WORD_BYTES)], remoteAddr, rkey }));
      return Array.from({ length: count }, (_, k) => region.bytes.readBigUInt64LE(at + k * WORD_BYTES));
    });
  }

  whenEnded(onEnd: () => void): () => void {
    this.#onEnd.add(onEnd);
    return () => this.#onEnd.delete(onEnd);
  }

  async #watchEnd(): Promise<void> {
    await this.#connection.peerClosed();
    for (const onEnd of this.#onEnd) onEnd();
    this.#onEnd.clear();
  }
}

type Target = RemoteTarget & { readonly sges: Elements };
