import { type Handlers, type RpcServer, serveRpc } from '@rocev2/rpc';
import type { Connection } from 'rocev2/internal/cm';
import { type Clock, checkOptions, checkWhole, NS_PER_MS, type OptionNames, RoceError } from 'rocev2/internal/core';
import { Access, type MemoryRegion } from 'rocev2/internal/verbs';
import { Cells, type CellsInit } from './cells.js';
import { type CellAnswer, type CellQuestion, PRIMITIVES_SERVICE } from './protocol.js';
import { type Producers, RingConsumer } from './ring-consumer.js';
import { ringWords } from './ring-layout.js';
import { PRODUCERS_MAX } from './ring-word.js';
import { WORD_BYTES } from './words.js';

const CALL_BYTES_MAX = 4096;

/** Options of a ring. */
export interface RingOptions {
  /** Messages that wait at most, 1 to 128. Default 128. */
  readonly slots?: number | undefined;
  /** Bytes of the longest message, 1 to 65,536. Default 1024. */
  readonly bytes?: number | undefined;
  /**
   * Milliseconds that a producer may take to write a message, 10 to 3,600,000; a slower one loses its connection.
   * Default 10,000.
   */
  readonly writeTimeoutMs?: number | undefined;
}

const RING_OPTIONS: OptionNames<RingOptions> = { slots: true, bytes: true, writeTimeoutMs: true };

interface Client {
  readonly connection: Connection;
  readonly server: RpcServer;
}

/** The side that has the memory. */
export class PrimitivesOwner {
  readonly #region: Buffer;
  readonly #cells: Cells;
  readonly #clock: Clock;
  readonly #clients = new Map<number, Client>();
  readonly #rings = new Map<string, RingConsumer>();
  #lastClient = 0;
  #isClosed = false;

  /** @internal */
  constructor(init: CellsInit, clock: Clock) {
    this.#region = init.region;
    this.#cells = new Cells(init);
    this.#clock = clock;
  }

  /** Clients that are connected. */
  get clients(): number {
    return this.#clients.size;
  }

  /** Names in use. */
  get names(): number {
    return this.#cells.size;
  }

  /**
   * Makes a ring, into which clients push messages, and which this side takes them out of. Throws ERR_ROCE_BUSY for a
   * name that has one, ERR_ROCE_LIMIT without room for it, ERR_ROCE_OUT_OF_RANGE, ERR_ROCE_UNKNOWN_NAME.
   */
  ring(name: string, options: RingOptions = {}): RingConsumer {
    checkOptions('ring', options, RING_OPTIONS);
    const { slots = 128, bytes = 1024, writeTimeoutMs = 10_000 } = options;
    checkWhole('writeTimeoutMs', writeTimeoutMs, 10, 3_600_000);
    const { offset } = this.#cells.ring(name, { slots, bytes });
    const memory = this.#region.subarray(offset, offset + ringWords({ slots, bytes }) * WORD_BYTES);
    const producers: Producers = {
      isThere: (producer) => this.#clients.has(producer),
      expel: (producer) => void this.#clients.get(producer)?.server.close(),
    };
    const writeTimeoutNs = writeTimeoutMs * NS_PER_MS;
    const consumer = new RingConsumer({ memory, slots, bytes, clock: this.#clock, producers, writeTimeoutNs });
    this.#rings.set(name, consumer);
    return consumer;
  }

  /** Serves a client. The primitives take over all messages of the connection. @internal */
  async add(connection: Connection): Promise<void> {
    const region = await connection.register(this.#region, Access.REMOTE_ALL);
    const id = this.#freeId();
    const server = serveRpc(connection, PRIMITIVES_SERVICE, this.#handlersFor(id, region), {
      valueBytesMax: CALL_BYTES_MAX,
    });
    this.#clients.set(id, { connection, server });
    if (!this.#isClosed) await connection.peerClosed();
    await this.#end(id);
  }

  /**
   * A client's claims are given to others only when its queue pair is destroyed: then none of its requests can be
   * executed.
   */
  async #end(id: number): Promise<void> {
    const { connection, server } = this.#clients.get(id)!;
    await server.close();
    await connection.close();
    this.#clients.delete(id);
  }

  /** Not one that was used lately: slots of a ring may still bear it. */
  #freeId(): number {
    do this.#lastClient = (this.#lastClient % PRODUCERS_MAX) + 1;
    while (this.#clients.has(this.#lastClient));
    return this.#lastClient;
  }

  #handlersFor(producer: number, { addr, rkey }: MemoryRegion): Handlers<typeof PRIMITIVES_SERVICE> {
    return {
      region: () => ({ addr: String(addr), rkey, producer }),
      cell: (question) => this.#answer(question),
      wake: ({ name }) => {
        this.#rings.get(name)?.look();
        return {};
      },
    };
  }

  #answer(question: CellQuestion): CellAnswer {
    try {
      return this.#cells.cell(question);
    } catch (error) {
      if (!(error instanceof RoceError)) throw error;
      return { error: error.code, message: error.message };
    }
  }

  /** Ends the connections of all clients, and with them all leases; and all rings. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const ring of this.#rings.values()) ring.close();
    await Promise.all([...this.#clients.values()].map(({ server }) => server.close()));
  }

  /** The same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
