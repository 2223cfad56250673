/** The owner of words: it gives them to names, and each client the key to them. What clients do with them it does not see. */

import type { Connection } from '../cm/connection.js';
import { RoceError } from '../core/errors.js';
import { type Handlers, type RpcServer, serveRpc } from '../rpc/index.js';
import { Access } from '../verbs/access.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import { Cells, type CellsInit } from './cells.js';
import { type CellAnswer, type CellQuestion, PRIMITIVES_SERVICE } from './protocol.js';

/** Calls are short. */
const CALL_BYTES_MAX = 4096;

/** The side that has the memory. */
export class PrimitivesOwner {
  readonly #region: Buffer;
  readonly #cells: Cells;
  readonly #clients = new Set<RpcServer>();
  #isClosed = false;

  /** @internal */
  constructor(init: CellsInit) {
    this.#region = init.region;
    this.#cells = new Cells(init);
  }

  /** Clients that are connected. */
  get clients(): number {
    return this.#clients.size;
  }

  /** Names in use. */
  get names(): number {
    return this.#cells.size;
  }

  /** Serves a client. The primitives take over all messages of the connection. @internal */
  async add(connection: Connection): Promise<void> {
    const region = await connection.register(this.#region, Access.REMOTE_ALL);
    const server = serveRpc(connection, PRIMITIVES_SERVICE, this.#handlersFor(region), {
      valueBytesMax: CALL_BYTES_MAX,
    });
    this.#clients.add(server);
    if (!this.#isClosed) await connection.peerClosed();
    this.#clients.delete(server);
    await server.close();
  }

  #handlersFor({ addr, rkey }: MemoryRegion): Handlers<typeof PRIMITIVES_SERVICE> {
    return {
      region: () => ({ addr: String(addr), rkey }),
      cell: (question) => this.#answer(question),
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

  /** Ends the connections of all clients, and with them all leases. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#clients].map((server) => server.close()));
  }

  /** The same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
