/**
 * Bounds how many connections a listener holds, in total and from each network, and chooses the connection that is
 * evicted when a quota is full. Every listener of the product counts its connections here.
 */

import type { Clock } from './clock.js';
import type { RoceError } from './errors.js';
import { NS_PER_MS } from './units.js';

/** Most connections. */
export interface ConnectionLimits {
  /** From all networks together. */
  readonly total: number;
  /** From one network: an IPv4 address, or an IPv6 network of 64 bits (`IpAddress.network`). */
  readonly perAddress: number;
}

/** The key by which a peer is counted: an `IpAddress`. */
export interface Origin {
  readonly network: string;
}

/** A limit on the connections that are in one of `states`. */
export interface ConnectionQuota<State extends string> extends Partial<ConnectionLimits> {
  readonly states: readonly State[];
}

type StateWith<Extra extends string> = 'pending' | 'admitted' | Extra;

/** Options of a limiter. `Extra` names states other than `pending` and `admitted`. */
export interface LimiterOptions<C, Extra extends string> {
  readonly quotas: ReadonlyArray<ConnectionQuota<StateWith<Extra>>>;
  /** Ends a connection that the limiter has evicted or refused. */
  readonly evict: (connection: C) => void;
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
  readonly cancelDeadline: () => void;
  /** Whether a pending connection has finished its handshake by now. */
  isAdmitted: () => boolean;
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
const never = () => false;
const nothing = () => {};

/**
 * Counts the connections of one listener. Each is `pending` before its handshake, and `admitted` or in a state of
 * `Extra` after it.
 */
export class ConnectionLimiter<C, Extra extends string = never> {
  /** Connections that met a full quota: another one was evicted, or they were refused. */
  turnedAway = 0;
  readonly #options: LimiterOptions<C, Extra>;
  readonly #entries = new Map<C, Entry<StateWith<Extra>>>();
  readonly #byState = new Map<StateWith<Extra>, EvictionIndex<C>>();
  #order = 0;

  constructor(options: LimiterOptions<C, Extra>) {
    this.#options = options;
  }

  /** All connections, in the order in which they were first entered. */
  get connections(): Iterable<C> {
    return this.#entries.keys();
  }

  /** Connections in a state, of one network or of all. */
  count(state: StateWith<Extra>, network?: string): number {
    const index = this.#byState.get(state);
    return (network === undefined ? index?.size : index?.networks.get(network)?.size) ?? 0;
  }

  /** Counts a connection in a state; one that is counted already moves, and keeps its network. Checks no quota. */
  enter(connection: C, state: StateWith<Extra>, { network }: Origin): void {
    let entry = this.#entries.get(connection);
    if (entry === undefined) {
      const cancelDeadline = state === 'pending' ? this.#startDeadline(connection) : nothing;
      entry = { network, state, order: 0, cancelDeadline, isAdmitted: never };
      this.#entries.set(connection, entry);
    } else if (entry.state === state) return;
    else this.#leaveState(connection, entry);
    entry.state = state;
    entry.order = this.#order++;
    if (!this.#byState.has(state)) this.#byState.set(state, new EvictionIndex());
    this.#byState.get(state)!.add(connection, entry.network);
  }

  #startDeadline(connection: C): () => void {
    const { handshakeDeadline: deadline } = this.#options;
    if (deadline === undefined) return nothing;
    const { clock, ms } = deadline;
    return clock.wakeAt(clock.nowNs() + ms * NS_PER_MS, () => {
      if (!this.#hasFinished(connection)) this.evict(connection);
    });
  }

  /** Counts a pending connection as admitted once it has finished its handshake. */
  #hasFinished(connection: C): boolean {
    const entry = this.#entries.get(connection)!;
    const hasFinished = entry.isAdmitted();
    if (hasFinished) this.enter(connection, 'admitted', entry);
    return hasFinished;
  }

  #leaveState(connection: C, { state, network, cancelDeadline }: Entry<StateWith<Extra>>): void {
    cancelDeadline();
    this.#byState.get(state)!.delete(connection, network);
  }

  /** Removes the connection from the counts; false when it was not counted. */
  leave(connection: C): boolean {
    const entry = this.#entries.get(connection);
    if (entry === undefined) return false;
    this.#entries.delete(connection);
    this.#leaveState(connection, entry);
    return true;
  }

  /**
   * The limit that forbids one more connection from the network in a state; that of the network comes first.
   */
  exceeded(state: StateWith<Extra>, { network }: Origin): keyof ConnectionLimits | undefined {
    const quotas = this.#options.quotas.filter(({ states }) => states.includes(state));
    if (quotas.some(({ states, perAddress = Infinity }) => this.#sum(states, network) >= perAddress))
      return 'perAddress';
    return quotas.some(({ states, total = Infinity }) => this.#sum(states) >= total) ? 'total' : undefined;
  }

  #sum(states: ReadonlyArray<StateWith<Extra>>, network?: string): number {
    return states.reduce((sum, state) => sum + this.count(state, network), 0);
  }

  /**
   * The oldest connection in a state that may be evicted: of the network, or, without one, of the network that has the
   * most connections in the state; among equals, of the one whose connection is the oldest.
   */
  oldest(state: StateWith<Extra>, from?: Origin, mayEvict: (connection: C) => boolean = always): C | undefined {
    const networks = this.#byState.get(state)?.networks;
    if (from !== undefined) return first(networks?.get(from.network), mayEvict);
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

  /** Ends a connection if it is still counted. */
  evict(connection: C): void {
    if (this.leave(connection)) this.#options.evict(connection);
  }

  /**
   * Makes space in a state for one more connection from the network. If a quota is full, evicts the {@link oldest}
   * connection in the state: of the network when that has its share, else of any. False: none may be evicted.
   */
  makeRoom(state: StateWith<Extra>, from: Origin, mayEvict?: (connection: C) => boolean): boolean {
    if (this.exceeded(state, from) === undefined) return true;
    for (const connection of [...this.#entries.keys()]) this.#hasFinished(connection);
    const limit = this.exceeded(state, from);
    if (limit === undefined) return true;
    this.turnedAway++;
    return this.evictOldest(state, limit === 'perAddress' ? from : undefined, mayEvict);
  }

  /** Evicts the {@link oldest} connection, for example to free a file descriptor. False: none may be evicted. */
  evictOldest(state: StateWith<Extra>, from?: Origin, mayEvict?: (connection: C) => boolean): boolean {
    for (;;) {
      const connection = this.oldest(state, from, mayEvict);
      if (connection === undefined) return false;
      if (this.#hasFinished(connection)) continue;
      this.evict(connection);
      return true;
    }
  }

  /**
   * Counts a new connection as pending if there is space for it, or if one can be evicted; else ends it. `isAdmitted`:
   * it has finished its handshake, and cannot be evicted for others.
   */
  admit(
    connection: C,
    from: Origin,
    isAdmitted: () => boolean = never,
    mayEvict?: (connection: C) => boolean,
  ): boolean {
    if (!this.makeRoom('pending', from, mayEvict)) {
      this.#options.evict(connection);
      return false;
    }
    this.enter(connection, 'pending', from);
    this.#entries.get(connection)!.isAdmitted = isAdmitted;
    return true;
  }

  /**
   * Counts a connection as pending during its handshake, and not after it. Resolves to false when it was evicted or has
   * left in the meantime, and when the handshake has failed, which `onFailed` handles.
   */
  async handshake(
    connection: C,
    from: Origin,
    run: () => Promise<unknown>,
    onFailed: (error: RoceError) => void,
  ): Promise<boolean> {
    this.makeRoom('pending', from);
    this.enter(connection, 'pending', from);
    try {
      await run();
      return this.leave(connection);
    } catch (error) {
      if (this.leave(connection)) onFailed(error as RoceError);
      return false;
    }
  }
}

function first<C>(connections: ReadonlySet<C> | undefined, mayEvict: (connection: C) => boolean): C | undefined {
  for (const connection of connections ?? []) if (mayEvict(connection)) return connection;
  return undefined;
}
