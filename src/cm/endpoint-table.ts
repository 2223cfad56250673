/**
 * All endpoints of one connection manager: found by its own communication ID, by the peer's and by the peer's queue
 * pair; bounded; with the time at which something is next due. An endpoint is here until its TIMEWAIT is over, so that
 * late datagrams find it.
 *
 * The eviction order, when a bound of `CmLimits` is reached: endpoints in TIMEWAIT first; then half-open ones whose
 * address is not validated, the oldest of the address that has the most; then, of addresses that have more than the
 * newcomer's, half-open ones whose address is validated. Connections are never evicted, nor is a reply whose RTU may
 * still arrive: its peer would consider itself connected. A request beyond the bounds is not answered, and its peer
 * repeats it.
 */

import { ConnectionLimiter } from '../core/connection-limiter.js';
import type { RandomSource } from '../core/random.js';
import type { IpAddress } from '../packet/address.js';
import { type CmLimits, VALIDATED_ADDRESSES_MAX } from './cm-limits.js';
import { DueSet } from './due-set.js';
import { CmEndpoint, type CmEventHandler, type CmState } from './endpoint.js';
import { ValidatedAddresses } from './validated-addresses.js';

export interface RemoteIdentity {
  readonly localCaGuid: bigint;
  readonly localCommId: number;
  readonly localQpn: number;
}

/** A peer that has not sent its RTU by this time after the REP may be evicted. */
const RTU_WAIT_NS = 2e9;
/** One in this many half-open endpoints is reserved for peers whose address is validated. */
const RESERVED_SHARE = 8;

/** Effects of the bounds on endpoints; part of `CmCounters`. */
export interface TableCounters {
  /** Half-open connections that were evicted for others. */
  evicted: number;
  /** Requests left unanswered because of `CmLimits` or the backlog of a listener; their peers repeat them. */
  deferred: number;
  /** Endpoints whose TIMEWAIT was cut short to make room. */
  timewaitCut: number;
  /** Datagrams for an unknown connection, or not from its peer. */
  unmatched: number;
}

export type Admission = 'admitted' | 'full' | 'deferred';

/** A half-open endpoint is `pending`, or `validated` if the address of its peer is. */
type ExtraState = 'validated' | 'timewait';

export class EndpointTable {
  readonly validatedAddresses = new ValidatedAddresses(VALIDATED_ADDRESSES_MAX);
  readonly #limits: CmLimits;
  readonly #random: RandomSource;
  readonly #counters: TableCounters;
  readonly #byLocalId = new Map<number, CmEndpoint>();
  readonly #byRemoteId = new Map<string, CmEndpoint>();
  readonly #byRemoteQpn = new Map<string, CmEndpoint>();
  readonly #limiter: ConnectionLimiter<CmEndpoint, ExtraState>;
  readonly #waiting = new DueSet<CmEndpoint>();

  constructor(limits: CmLimits, random: RandomSource, counters: TableCounters) {
    this.#limits = limits;
    this.#random = random;
    this.#counters = counters;
    const { halfOpen, halfOpenPerAddress, connectionsPerAddress, timewaitPerAddress } = limits;
    this.#limiter = new ConnectionLimiter<CmEndpoint, ExtraState>({
      quotas: [
        { states: ['pending', 'validated'], total: halfOpen, perAddress: halfOpenPerAddress },
        { states: ['pending'], total: withoutReserve(halfOpen), perAddress: withoutReserve(halfOpenPerAddress) },
        { states: ['admitted'], perAddress: connectionsPerAddress },
        { states: ['timewait'], perAddress: timewaitPerAddress },
      ],
      evict: (endpoint) => this.#onEvicted(endpoint),
    });
  }

  /**
   * Makes space for a request of this peer, by eviction if necessary. `full`: its address has as many connections as it
   * may have. `deferred`: half-open endpoints of higher rank occupy all space for now.
   */
  admit(source: IpAddress, isValidated: boolean, now: number): Admission {
    const limiter = this.#limiter;
    if (limiter.exceeded('admitted', source) !== undefined) return 'full';
    const limit = limiter.exceeded(isValidated ? 'validated' : 'pending', source);
    const hasRoom =
      limit === undefined ||
      (limit === 'perAddress'
        ? limiter.evictOldest('pending', source, (endpoint) => mayEvict(endpoint, now))
        : this.#evictOne(source, isValidated, now));
    return hasRoom && this.#makeRoom(source, isValidated, now) ? 'admitted' : 'deferred';
  }

  /** Space for one more endpoint that this side requests. */
  makeRoom(source: IpAddress, now: number): boolean {
    return this.#makeRoom(source, true, now);
  }

  #makeRoom(source: IpAddress, isValidated: boolean, now: number): boolean {
    if (this.#byLocalId.size < this.#limits.endpoints) return true;
    return this.#limiter.evictOldest('timewait') || this.#evictOne(source, isValidated, now);
  }

  #evictOne(source: IpAddress, isValidated: boolean, now: number): boolean {
    const limiter = this.#limiter;
    const isEvictable = (endpoint: CmEndpoint) => mayEvict(endpoint, now);
    if (limiter.evictOldest('pending', undefined, isEvictable)) return true;
    const first = limiter.oldest('validated', undefined, isEvictable);
    if (first === undefined) return false;
    const claim = limiter.count('validated', source.network) + (isValidated ? 0 : 1);
    if (limiter.count('validated', first.remote.network) <= claim) return false;
    limiter.evict(first);
    return true;
  }

  /**
   * Evicts a half-open endpoint; no effect on others. Its peer is not notified: an honest peer repeats its request,
   * which counts as new.
   */
  evict(endpoint: CmEndpoint): void {
    if (endpoint.isHalfOpen) this.#limiter.evict(endpoint);
  }

  #onEvicted(endpoint: CmEndpoint): void {
    const { onEvent, isHalfOpen } = endpoint;
    this.remove(endpoint);
    if (isHalfOpen) {
      this.#counters.evicted++;
      onEvent({ type: 'EVICTED' });
    } else this.#counters.timewaitCut++;
  }

  /** A new endpoint, with an unguessable ID. */
  add(remote: IpAddress, state: 'REQ_SENT' | 'REQ_RCVD', onEvent: CmEventHandler): CmEndpoint {
    let localCommId = 0;
    while (localCommId === 0 || this.#byLocalId.has(localCommId)) localCommId = this.#random.u32();
    const endpoint = new CmEndpoint(localCommId, remote, state, onEvent);
    this.#byLocalId.set(localCommId, endpoint);
    this.#waiting.add(endpoint);
    return endpoint;
  }

  learnRemote(endpoint: CmEndpoint, { localCaGuid, localCommId, localQpn }: RemoteIdentity): void {
    const { remote } = endpoint;
    endpoint.remoteCaGuid = localCaGuid;
    endpoint.remoteCommId = localCommId;
    endpoint.remoteQpn = localQpn;
    endpoint.isValidated ||= this.validatedAddresses.has(remote, localCaGuid);
    this.#byRemoteId.set(key(remote, localCaGuid, localCommId), endpoint);
    this.#byRemoteQpn.set(key(remote, localCaGuid, localQpn), endpoint);
    this.#count(endpoint);
  }

  enter(endpoint: CmEndpoint, state: CmState): void {
    endpoint.state = state;
    endpoint.deadlineNs = Number.POSITIVE_INFINITY;
    this.#count(endpoint);
  }

  enterTimewait(endpoint: CmEndpoint, now: number): void {
    endpoint.unanswered = new Uint8Array(0);
    this.#limiter.makeRoom('timewait', endpoint.remote);
    this.enter(endpoint, 'TIMEWAIT');
    this.arm(endpoint, now + endpoint.timewaitNs);
  }

  validate(endpoint: CmEndpoint): void {
    const { remote, remoteCaGuid } = endpoint;
    const isKnown = this.validatedAddresses.has(remote, remoteCaGuid);
    this.validatedAddresses.add(remote, remoteCaGuid);
    this.#markValidated(endpoint);
    if (isKnown) return;
    for (const other of this.all()) {
      const isSamePeer = other.remoteCaGuid === remoteCaGuid && other.remote.equals(remote);
      if (isSamePeer && other.isHalfOpen && !other.isValidated) this.#markValidated(other);
    }
  }

  #markValidated(endpoint: CmEndpoint): void {
    endpoint.isValidated = true;
    this.#count(endpoint);
  }

  remove(endpoint: CmEndpoint): void {
    this.enter(endpoint, 'CLOSED');
    this.#byLocalId.delete(endpoint.localCommId);
    this.#waiting.delete(endpoint);
    const { remote, remoteCaGuid, remoteCommId, remoteQpn } = endpoint;
    removeIf(this.#byRemoteId, key(remote, remoteCaGuid, remoteCommId), endpoint);
    removeIf(this.#byRemoteQpn, key(remote, remoteCaGuid, remoteQpn), endpoint);
  }

  #count(endpoint: CmEndpoint): void {
    this.#limiter.leave(endpoint); // It is the newest of its new state, and of the same one.
    const state = limiterStateOf(endpoint);
    if (state !== undefined) this.#limiter.enter(endpoint, state, endpoint.remote);
  }

  /**
   * By the ID of this end, if the datagram is from its peer, and names the peer's ID where it must; else it is counted.
   */
  match(source: IpAddress, localCommId: number, remoteCommId?: number): CmEndpoint | undefined {
    const endpoint = this.#byLocalId.get(localCommId);
    const fromPeer = endpoint?.remote.equals(source) === true;
    if (fromPeer && (remoteCommId === undefined || endpoint.remoteCommId === remoteCommId)) return endpoint;
    this.#counters.unmatched++;
    return undefined;
  }

  byRemoteId(remote: IpAddress, caGuid: bigint, commId: number): CmEndpoint | undefined {
    return this.#byRemoteId.get(key(remote, caGuid, commId));
  }

  byRemoteQpn(remote: IpAddress, caGuid: bigint, qpn: number): CmEndpoint | undefined {
    return this.#byRemoteQpn.get(key(remote, caGuid, qpn));
  }

  all(): CmEndpoint[] {
    return this.#waiting.all();
  }

  get nextDeadlineNs(): number {
    return this.#waiting.nextDeadlineNs;
  }

  arm(endpoint: CmEndpoint, deadlineNs: number): void {
    this.#waiting.arm(endpoint, deadlineNs);
  }

  due(now: number): CmEndpoint[] {
    return this.#waiting.due(now);
  }
}

function withoutReserve(limit: number): number {
  return limit - Math.floor(limit / RESERVED_SHARE);
}

/** Half-open endpoints only: one whose program has not answered it yet, or whose peer is late. */
function mayEvict({ state, repliedNs }: CmEndpoint, now: number): boolean {
  return state === 'REQ_RCVD' || now - repliedNs >= RTU_WAIT_NS;
}

/** Endpoints of the active side count only in TIMEWAIT. */
function limiterStateOf({
  state,
  isActive,
  isHalfOpen,
  isValidated,
}: CmEndpoint): 'pending' | 'admitted' | ExtraState | undefined {
  if (state === 'TIMEWAIT') return 'timewait';
  if (isActive || state === 'CLOSED') return undefined;
  if (!isHalfOpen) return 'admitted';
  return isValidated ? 'validated' : 'pending';
}

function key(remote: IpAddress, caGuid: bigint, id: number): string {
  return `${remote} ${caGuid} ${id}`;
}

function removeIf(table: Map<string, CmEndpoint>, at: string, endpoint: CmEndpoint): void {
  if (table.get(at) === endpoint) table.delete(at);
}
