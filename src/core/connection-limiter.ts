/**
 * Bounds how many connections a listener holds, in total and from each network, and chooses the connection that is evicted when a quota is full.
 * Every listener of the product counts its connections here.
 */

import type { Clock } from './clock.js';
import { NS_PER_MS } from './units.js';

/** Most connections. */
export interface ConnectionLimits {
  /** From all networks together. */
  readonly total: number;
  /** From one network: an IPv4 address, or an IPv6 network of 64 bits (`IpAddress.network`). */
  readonly perAddress: number;
}

/** A limit on the connections that are in one of `states`. */
export interface ConnectionQuota<State extends string> extends Partial<ConnectionLimits> {
  readonly states: readonly State[];
}

/** What a limiter is made with. `Later` names the states after `pending`. */
export interface LimiterOptions<C, Later extends string> {
  readonly quotas: ReadonlyArray<ConnectionQuota<'pending' | Later>>;
  /** Ends a connection that the limiter has evicted, and counts no longer. */
  readonly evict: (connection: C) => void;
  /** The state that a connection has reached by itself. A pending connection is asked before it is evicted. */
  readonly stateOf?: (connection: C) => 'pending' | Later;
  /** A connection that is still pending after this time is evicted. Default: no deadline. */
  readonly handshakeDeadline?: { readonly clock: Clock; readonly ms: number };
}

/** Connections that have sent nothing yet. An honest peer is silent for one round trip. */
export const PENDING_LIMITS: ConnectionLimits = { total: 256, perAddress: 64 };

interface Entry<State> {
  readonly network: string;
  state: State;
  /** Rises with each entry into a state. */
  order: number;
  cancelDeadline: () => void;
}

/** The connections in one state, by network; those of a network in the order in which they entered the state. */
class EvictionIndex<C> {
  readonly networks = new Map<string, Set<C>>();
  size = 0;

  add(connection: C, network: string): void {
    const connections = this.networks.get(network);
    if (connections === undefined) this.networks.set(network, new Set([connection]));
    else connections.add(connection);
    this.size++;
  }

  delete(connection: C, network: string): void {
    const connections = this.networks.get(network)!;
    connections.delete(connection);
    if (connections.size === 0) this.networks.delete(network);
    this.size--;
  }
}

const always = () => true;

/** Counts the connections of one listener. Each is `pending` before its handshake, and in a state of `Later` after it. */
export class ConnectionLimiter<C, Later extends string = 'admitted'> {
  /** Connections that met a full quota: another one was evicted, or they were refused. */
  turnedAway = 0;
  readonly #options: LimiterOptions<C, Later>;
  readonly #entries = new Map<C, Entry<'pending' | Later>>();
  readonly #byState = new Map<'pending' | Later, EvictionIndex<C>>();
  #order = 0;

  constructor(options: LimiterOptions<C, Later>) {
    this.#options = options;
  }

  /** All connections, in the order in which they were first entered. */
  get connections(): Iterable<C> {
    return this.#entries.keys();
  }

  /** Connections in a state, of one network or of all. */
  count(state: 'pending' | Later, network?: string): number {
    const index = this.#byState.get(state);
    return (network === undefined ? index?.size : index?.networks.get(network)?.size) ?? 0;
  }

  /** Counts a connection in a state; one that is counted already moves, and keeps its network. Checks no quota. */
  enter(connection: C, state: 'pending' | Later, network: string): void {
    let entry = this.#entries.get(connection);
    if (entry === undefined) {
      entry = { network, state, order: 0, cancelDeadline: this.#startDeadline(connection, state) };
      this.#entries.set(connection, entry);
    } else if (entry.state === state) return;
    else this.#leaveState(connection, entry);
    entry.state = state;
    entry.order = this.#order++;
    if (!this.#byState.has(state)) this.#byState.set(state, new EvictionIndex());
    this.#byState.get(state)!.add(connection, entry.network);
  }

  #startDeadline(connection: C, state: 'pending' | Later): () => void {
    const { handshakeDeadline: deadline, stateOf } = this.#options;
    if (deadline === undefined || state !== 'pending') return () => {};
    const { clock, ms } = deadline;
    return clock.wakeAt(clock.nowNs() + ms * NS_PER_MS, () => {
      if (stateOf === undefined || stateOf(connection) === 'pending') this.evict(connection);
    });
  }

  #leaveState(connection: C, { state, network, cancelDeadline }: Entry<'pending' | Later>): void {
    cancelDeadline();
    this.#byState.get(state)!.delete(connection, network);
  }

  /** Counts the connection no longer; false when it was not counted. */
  leave(connection: C): boolean {
    const entry = this.#entries.get(connection);
    if (entry === undefined) return false;
    this.#entries.delete(connection);
    this.#leaveState(connection, entry);
    return true;
  }

  /** The limit that leaves no room in a state for one more connection from the network; that of the network comes first. */
  exceeded(state: 'pending' | Later, network: string): keyof ConnectionLimits | undefined {
    const quotas = this.#options.quotas.filter(({ states }) => states.includes(state));
    if (quotas.some(({ states, perAddress = Infinity }) => this.#sum(states, network) >= perAddress))
      return 'perAddress';
    return quotas.some(({ states, total = Infinity }) => this.#sum(states) >= total) ? 'total' : undefined;
  }

  #sum(states: ReadonlyArray<'pending' | Later>, network?: string): number {
    return states.reduce((sum, state) => sum + this.count(state, network), 0);
  }

  /**
   * The oldest connection in a state that may be evicted: of the network, or, without one, of the network that has the most connections in the
   * state; among equals, of the one whose connection is the oldest.
   */
  oldest(state: 'pending' | Later, network?: string, mayEvict: (connection: C) => boolean = always): C | undefined {
    const networks = this.#byState.get(state)?.networks;
    if (network !== undefined) return first(networks?.get(network), mayEvict);
    let found: C | undefined;
    let most = 0;
    for (const connections of networks?.values() ?? []) {
      if (connections.size < most) continue;
      const candidate = first(connections, mayEvict);
      if (candidate === undefined) continue;
      if (connections.size === most && this.#orderOf(candidate) > this.#orderOf(found!)) continue;
      found = candidate;
      most = connections.size;
    }
    return found;
  }

  #orderOf(connection: C): number {
    return this.#entries.get(connection)!.order;
  }

  /** Ends a connection, unless it is counted no longer. */
  evict(connection: C): void {
    if (this.leave(connection)) this.#options.evict(connection);
  }

  /**
   * Makes room in a state for one more connection from the network. Where a quota is full, evicts the {@link oldest} connection in the state: of the
   * network when that has its share, else of any. False: none may be evicted.
   */
  makeRoom(state: 'pending' | Later, network: string, mayEvict?: (connection: C) => boolean): boolean {
    const limit = this.exceeded(state, network);
    if (limit === undefined) return true;
    this.turnedAway++;
    return this.evictOldest(state, limit === 'perAddress' ? network : undefined, mayEvict);
  }

  /** Evicts the {@link oldest} connection, for example to free a file descriptor. False: none may be evicted. */
  evictOldest(state: 'pending' | Later, network?: string, mayEvict?: (connection: C) => boolean): boolean {
    for (;;) {
      const connection = this.oldest(state, network, mayEvict);
      if (connection === undefined) return false;
      const reached = this.#options.stateOf?.(connection) ?? state;
      if (reached === state) {
        this.evict(connection);
        return true;
      }
      this.enter(connection, reached, this.#entries.get(connection)!.network);
    }
  }

  /** Counts a new connection as pending if there is room for it, or if one can be evicted; else it is the caller's to close. */
  admit(connection: C, network: string): boolean {
    const hasRoom = this.makeRoom('pending', network);
    if (hasRoom) this.enter(connection, 'pending', network);
    return hasRoom;
  }

  /**
   * Counts a connection as pending during its handshake, and not after it. Resolves to false when it was evicted or has left in the meantime; otherwise to
   * true, or rejects, as the handshake does.
   */
  async handshake(connection: C, network: string, run: () => Promise<unknown>): Promise<boolean> {
    this.makeRoom('pending', network);
    this.enter(connection, 'pending', network);
    try {
      await run();
    } catch (error) {
      if (this.leave(connection)) throw error;
      return false;
    }
    return this.leave(connection);
  }
}

function first<C>(connections: ReadonlySet<C> | undefined, mayEvict: (connection: C) => boolean): C | undefined {
  for (const connection of connections ?? []) if (mayEvict(connection)) return connection;
  return undefined;
}
