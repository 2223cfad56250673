/** Which server a client uses: a disk over streams moves when its owner is gone or another takes over. */

import { checkKind } from '../../core/arguments.js';
import { NotOwnerRedirect } from '../sk/not-owner-redirect.js';

/** Where a storage server is. */
export interface ServerAddress {
  /** Name or address. */
  readonly host: string;
  /** Its TCP port. */
  readonly port: number;
}

/** Locates the disk's server before each attempt to connect. Undefined, or a rejection: unknown. */
export type FindServer = () => Promise<ServerAddress | undefined>;

function isHost(host: unknown): boolean {
  return typeof host === 'string' && host !== '';
}

/** Finds the server of a disk. */
export class ServerResolver {
  readonly #hosts: readonly string[];
  readonly #port: number;
  readonly #find: FindServer | undefined;
  readonly #sessions: number;
  #at = 0;
  #failures = 0;
  #server: ServerAddress | undefined;

  /** `sessions`: how many sessions there are, each of which fails separately. */
  constructor(host: string | readonly string[] | FindServer, port: number, sessions: number) {
    this.#find = typeof host === 'function' ? host : undefined;
    const hosts = typeof host === 'string' ? [host] : typeof host === 'function' ? [] : host;
    const isKnown = this.#find !== undefined || (Array.isArray(hosts) && hosts.length > 0 && hosts.every(isHost));
    checkKind('host', host, isKnown, 'an address, a list of some, or a function that finds the server');
    this.#hosts = hosts;
    this.#port = port;
    this.#sessions = sessions;
  }

  get attempts(): number {
    return Math.max(1, this.#hosts.length) * this.#sessions;
  }

  get canMove(): boolean {
    return this.#find !== undefined || this.#hosts.length > 1;
  }

  get server(): ServerAddress {
    return this.#server ?? { host: this.#hosts[this.#at], port: this.#port };
  }

  /**
   * Asks where the server is, where there is somebody to ask; true: elsewhere than before. Rejects with a
   * {@link NotOwnerRedirect} if that is not known.
   */
  async locate(): Promise<boolean> {
    if (this.#find === undefined) return false;
    const found = await (async () => this.#find!())().catch((cause: Error) => {
      throw new NotOwnerRedirect(`who has the disk is not known: ${cause.message}`, undefined, { cause });
    });
    if (found === undefined) throw new NotOwnerRedirect('no server has the disk now');
    const last = this.#server;
    this.#server = found;
    return last !== undefined && (last.host !== found.host || last.port !== found.port);
  }

  /**
   * A session has a connection, or could not have one by any transport: when that has happened to all of them, the next
   * server is tried.
   */
  onReach(error: Error | undefined): void {
    this.#failures = error === undefined ? 0 : this.#failures + 1;
    if (this.#failures < this.#sessions || this.#hosts.length === 0) return;
    this.#failures = 0;
    this.#at = (this.#at + 1) % this.#hosts.length;
  }
}
