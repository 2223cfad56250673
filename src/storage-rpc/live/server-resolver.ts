/** Which server a client asks: where a disk is served by whoever owns it, as one over streams is, it moves when its owner is gone, or another one takes it over. */

import { checkKind } from '../../core/arguments.js';
import { NotOwnerRedirect } from '../sk/not-owner-redirect.js';

/** Where a storage server is. */
export interface ServerAddress {
  /** Name or address. */
  readonly host: string;
  /** Its TCP port. */
  readonly port: number;
}

/** Says where the disk is served now; it is asked before each attempt to connect. Undefined, or a rejection: nobody is known to have it. */
export type FindServer = () => Promise<ServerAddress | undefined>;

/** Finds the server of a disk. */
export class ServerResolver {
  readonly #hosts: readonly string[];
  readonly #port: number;
  readonly #find: FindServer | undefined;
  readonly #sessions: number;
  #at = 0;
  #failures = 0;
  #server: ServerAddress | undefined;

  /**
   * `host`: the server; several, of which one has the disk, and which are asked in turn; or who knows. `sessions`: how many sessions ask, each of which fails by itself. Throws
   * ERR_ROCE_INVALID_ARGUMENT for an empty list.
   */
  constructor(host: string | readonly string[] | FindServer, port: number, sessions: number) {
    this.#find = typeof host === 'function' ? host : undefined;
    const hosts = typeof host === 'string' ? [host] : typeof host === 'function' ? [] : host;
    const isKnown = this.#find !== undefined || (Array.isArray(hosts) && hosts.length > 0);
    checkKind('host', host, isKnown, 'an address, a list of some, or a function that finds the server');
    this.#hosts = hosts;
    this.#port = port;
    this.#sessions = sessions;
  }

  /** Attempts to connect after which all servers have been asked. */
  get attempts(): number {
    return Math.max(1, this.#hosts.length) * this.#sessions;
  }

  /** Whether there may be another server than the one that was asked. */
  get canMove(): boolean {
    return this.#find !== undefined || this.#hosts.length > 1;
  }

  /** The server to ask now. */
  get server(): ServerAddress {
    return this.#server ?? { host: this.#hosts[this.#at], port: this.#port };
  }

  /** Asks where the server is, where there is somebody to ask; true: elsewhere than before. Rejects with a {@link NotOwnerRedirect} if that is not known. */
  async locate(): Promise<boolean> {
    if (this.#find === undefined) return false;
    const found = await this.#find().catch((cause: Error) => {
      throw new NotOwnerRedirect(`who has the disk is not known: ${cause.message}`, undefined, { cause });
    });
    if (found === undefined) throw new NotOwnerRedirect('nobody serves the disk now');
    const last = this.#server;
    this.#server = found;
    return last !== undefined && (last.host !== found.host || last.port !== found.port);
  }

  /** A session has a connection, or could not have one by any transport: when that has happened to all of them, the next server is asked. */
  onReach(error: Error | undefined): void {
    this.#failures = error === undefined ? 0 : this.#failures + 1;
    if (this.#failures < this.#sessions || this.#hosts.length === 0) return;
    this.#failures = 0;
    this.#at = (this.#at + 1) % this.#hosts.length;
  }
}
