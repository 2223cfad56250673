/**
 * All endpoints of one connection manager: found by its own communication ID, by the peer's and by the peer's queue pair; bounded; with the time at
 * which something is next due. An endpoint is here until its TIMEWAIT is over, so that late datagrams find it.
 *
 * Who makes room for a newcomer, when a bound of `CmLimits` is reached: endpoints in TIMEWAIT first; then half-open ones of peers that have proved
 * nothing, the oldest of the address that has the most; then, of addresses that have more than the newcomer's, half-open ones of peers that have
 * answered before. Connections never do.
 */

import type { RandomSource } from '../core/random.js';
import type { IpAddress } from '../packet/address.js';
import { type CmLimits, PROVED_PEERS_MAX } from './cm-limits.js';
import { Crowd } from './crowd.js';
import { DueSet } from './due-set.js';
import { CmEndpoint, type CmEventHandler, type CmState } from './endpoint.js';
import { ProvedPeers } from './proved-peers.js';

/** What REQ and REP say of their sender. */
export interface RemoteIdentity {
  /** Of its connection manager. */
  readonly localCaGuid: bigint;
  /** Of its endpoint. */
  readonly localCommId: number;
  /** Of its queue pair. */
  readonly localQpn: number;
}

/** Effects of the bounds on endpoints; part of `CmCounters`. */
export interface TableCounters {
  /** Half-open connections that made room for others. */
  crowdedOut: number;
  /** Endpoints whose TIMEWAIT was cut short to make room. */
  timewaitCut: number;
  /** Datagrams for an unknown connection, or not from its peer. */
  unmatched: number;
}

/** Written by the sides of the protocol, which say what state an endpoint enters. */
export class EndpointTable {
  /** Those who have answered before. */
  readonly provedPeers = new ProvedPeers(PROVED_PEERS_MAX);
  readonly #limits: CmLimits;
  readonly #random: RandomSource;
  readonly #counters: TableCounters;
  readonly #byLocalId = new Map<number, CmEndpoint>();
  readonly #byRemoteId = new Map<string, CmEndpoint>();
  readonly #byRemoteQpn = new Map<string, CmEndpoint>();
  /** Half-open, by whether the peer has proved its address. */
  readonly #unproved = new Crowd<CmEndpoint>();
  readonly #proved = new Crowd<CmEndpoint>();
  readonly #timewait = new Crowd<CmEndpoint>();
  /** Whatever peers have made, and is neither half-open nor over. */
  readonly #connected = new Crowd<CmEndpoint>();
  readonly #waiting = new DueSet<CmEndpoint>();

  constructor(limits: CmLimits, random: RandomSource, counters: TableCounters) {
    this.#limits = limits;
    this.#random = random;
    this.#counters = counters;
  }

  // ---- coming and going

  /**
   * Room for a request of this peer, who makes it if need be. False: connections, or half-open ones with a better claim, hold it all.
   */
  admit(source: IpAddress, hasProved: boolean): boolean {
    const { connectionsPerAddress, halfOpenPerAddress, halfOpen } = this.#limits;
    if (this.#connected.countOf(source) >= connectionsPerAddress) return false;
    if (this.#unproved.countOf(source) + this.#proved.countOf(source) >= halfOpenPerAddress) {
      const first = this.#unproved.oldestOf(source) ?? (hasProved ? this.#proved.oldestOf(source) : undefined);
      if (first === undefined) return false;
      this.crowdOut(first);
    } else if (this.#unproved.size + this.#proved.size >= halfOpen && !this.#crowdOneOut(source, hasProved)) {
      return false;
    }
    return this.makeRoom(source, hasProved);
  }

  /** Room for one more endpoint of any kind. */
  makeRoom(source: IpAddress, hasProved: boolean): boolean {
    if (this.#byLocalId.size < this.#limits.endpoints) return true;
    const over = this.#timewait.oldestOfFullest();
    if (over === undefined) return this.#crowdOneOut(source, hasProved);
    this.#cutTimewait(over);
    return true;
  }

  #crowdOneOut(source: IpAddress, hasProved: boolean): boolean {
    let first = this.#unproved.oldestOfFullest();
    if (first === undefined) {
      first = this.#proved.oldestOfFullest();
      if (first === undefined) return false;
      const claim = this.#proved.countOf(source) + (hasProved ? 0 : 1);
      if (this.#proved.countOf(first.remote) <= claim) return false;
    }
    this.crowdOut(first);
    return true;
  }

  /** A half-open endpoint makes room; harmless for others. Its peer is not told: if it is honest it asks again, and is new. */
  crowdOut(endpoint: CmEndpoint): void {
    if (!endpoint.isHalfOpen) return;
    this.#counters.crowdedOut++;
    const { onEvent } = endpoint;
    this.remove(endpoint);
    onEvent({ type: 'CROWDED_OUT' });
  }

  #cutTimewait(endpoint: CmEndpoint): void {
    this.#counters.timewaitCut++;
    this.remove(endpoint);
  }

  /** A new endpoint, with an ID that nobody can guess who has not been told. */
  add(remote: IpAddress, state: 'REQ_SENT' | 'REQ_RCVD', onEvent: CmEventHandler): CmEndpoint {
    let localCommId = 0;
    while (localCommId === 0 || this.#byLocalId.has(localCommId)) localCommId = this.#random.u32();
    const endpoint = new CmEndpoint(localCommId, remote, state, onEvent);
    this.#byLocalId.set(localCommId, endpoint);
    this.#waiting.add(endpoint);
    return endpoint;
  }

  /** What a REQ or REP said; the endpoint is found by it from now on, and counts among those of its address. */
  learnRemote(endpoint: CmEndpoint, { localCaGuid, localCommId, localQpn }: RemoteIdentity): void {
    const { remote } = endpoint;
    endpoint.remoteCaGuid = localCaGuid;
    endpoint.remoteCommId = localCommId;
    endpoint.remoteQpn = localQpn;
    endpoint.hasProved ||= this.provedPeers.has(remote, localCaGuid);
    this.#byRemoteId.set(key(remote, localCaGuid, localCommId), endpoint);
    this.#byRemoteQpn.set(key(remote, localCaGuid, localQpn), endpoint);
    this.#crowdOf(endpoint)?.add(endpoint);
  }

  /** Nothing is due for it until its new state sets a time. */
  enter(endpoint: CmEndpoint, state: CmState): void {
    this.#crowdOf(endpoint)?.delete(endpoint);
    endpoint.state = state;
    endpoint.deadlineNs = Number.POSITIVE_INFINITY;
    this.#crowdOf(endpoint)?.add(endpoint);
  }

  /** It is over but for late datagrams, until the time that it has for that. */
  enterTimewait(endpoint: CmEndpoint, now: number): void {
    endpoint.unanswered = new Uint8Array(0);
    const first = this.#timewait.oldestOf(endpoint.remote);
    if (first !== undefined && this.#timewait.countOf(endpoint.remote) >= this.#limits.timewaitPerAddress) {
      this.#cutTimewait(first);
    }
    this.enter(endpoint, 'TIMEWAIT');
    this.arm(endpoint, now + endpoint.timewaitNs);
  }

  /** The peer has shown that it receives at its address. */
  prove(endpoint: CmEndpoint): void {
    this.#crowdOf(endpoint)?.delete(endpoint);
    endpoint.hasProved = true;
    this.provedPeers.add(endpoint.remote, endpoint.remoteCaGuid);
    this.#crowdOf(endpoint)?.add(endpoint);
  }

  /** Forgets it. */
  remove(endpoint: CmEndpoint): void {
    this.enter(endpoint, 'CLOSED');
    this.#byLocalId.delete(endpoint.localCommId);
    this.#waiting.delete(endpoint);
    const { remote, remoteCaGuid, remoteCommId, remoteQpn } = endpoint;
    removeIf(this.#byRemoteId, key(remote, remoteCaGuid, remoteCommId), endpoint);
    removeIf(this.#byRemoteQpn, key(remote, remoteCaGuid, remoteQpn), endpoint);
  }

  #crowdOf(endpoint: CmEndpoint): Crowd<CmEndpoint> | undefined {
    const { state, isActive, hasProved } = endpoint;
    if (state === 'TIMEWAIT') return this.#timewait;
    if (isActive || state === 'CLOSED') return undefined;
    if (!endpoint.isHalfOpen) return this.#connected;
    return hasProved ? this.#proved : this.#unproved;
  }

  // ---- finding

  /** By the ID of this end, if the datagram is from its peer, and names the peer's ID where it must; else it is counted. */
  match(source: IpAddress, localCommId: number, remoteCommId?: number): CmEndpoint | undefined {
    const endpoint = this.#byLocalId.get(localCommId);
    const fromPeer = endpoint?.remote.equals(source) === true;
    if (fromPeer && (remoteCommId === undefined || endpoint.remoteCommId === remoteCommId)) return endpoint;
    this.#counters.unmatched++;
    return undefined;
  }

  /** By the ID of the other end. */
  byRemoteId(remote: IpAddress, caGuid: bigint, commId: number): CmEndpoint | undefined {
    return this.#byRemoteId.get(key(remote, caGuid, commId));
  }

  /** By the queue pair of the other end. */
  byRemoteQpn(remote: IpAddress, caGuid: bigint, qpn: number): CmEndpoint | undefined {
    return this.#byRemoteQpn.get(key(remote, caGuid, qpn));
  }

  /** A copy of the list. */
  all(): CmEndpoint[] {
    return this.#waiting.all();
  }

  // ---- time

  /** When something is due, or earlier; Infinity: never. */
  get nextDeadlineNs(): number {
    return this.#waiting.nextDeadlineNs;
  }

  /** Something is due for the endpoint at this time, instead of any other. */
  arm(endpoint: CmEndpoint, deadlineNs: number): void {
    this.#waiting.arm(endpoint, deadlineNs);
  }

  /** Those whose time has come. */
  due(now: number): CmEndpoint[] {
    return this.#waiting.due(now);
  }
}

/** Peers are told apart by address and GUID, and what is theirs by a number. */
function key(remote: IpAddress, caGuid: bigint, id: number): string {
  return `${remote} ${caGuid} ${id}`;
}

function removeIf(table: Map<string, CmEndpoint>, at: string, endpoint: CmEndpoint): void {
  if (table.get(at) === endpoint) table.delete(at);
}
