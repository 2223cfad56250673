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
export const READ_WORDS_MAX = 128;
const BUFFERS = 64;

/** Offsets are bytes in its region, multiples of 8. */
export interface RemoteWords {
  readonly clock: Clock;
  /** 1 §9.4.5, FetchAdd). */
  fetchAdd(offset: number, add: bigint): Promise<bigint>;
  /** Stores `desired` where the word equals `expected`. Resolves to the value before (IBTA vol. 1 §9.4.5, CmpSwap). */
  compareSwap(offset: number, expected: bigint, desired: bigint): Promise<bigint>;
  /** Reads up to {@link READ_WORDS_MAX} words that are adjacent; each is read atomically, but not all at one time. */
  read(offset: number, count: number): Promise<bigint[]>;
  write(offset: number, data: Uint8Array): Promise<void>;
  whenEnded(onEnd: () => void): () => void;
}

export class ConnectionWords implements RemoteWords {
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

  /** Operations are copies to memory of a local owner. */
  get areMapped(): boolean {
    return this.#connection.qp.maps(this.#start.rkey);
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
