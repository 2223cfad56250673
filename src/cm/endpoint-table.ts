/**
 * All endpoints of one connection manager: found by its own communication ID, by the peer's and by the peer's queue
 * pair; bounded; with the time at which something is next due. An endpoint is here until its TIMEWAIT is over, so that
 * late datagrams find it.
 *
 * The eviction order, when a bound of `CmLimits` is reached: endpoints in TIMEWAIT first; then half-open ones whose
 * address is not validated, the oldest of the address that has the most; then, of addresses that have more than the
 * newcomer's, half-open ones whose address is validated. Connections are never evicted.
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

/** Effects of the bounds on endpoints; part of `CmCounters`. */
export interface TableCounters {
  /** Half-open connections that made room for others. */
  evicted: number;
  /** Endpoints whose TIMEWAIT was cut short to make room. */
  timewaitCut: number;
  /** Datagrams for an unknown connection, or not from its peer. */
  unmatched: number;
}

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
        { states: ['admitted'], perAddress: connectionsPerAddress },
        { states: ['timewait'], perAddress: timewaitPerAddress },
      ],
      evict: (endpoint) => this.#onEvicted(endpoint),
    });
  }

  /**
   * Makes room for a request of this peer. False: connections, or half-open ones with a better claim, hold it all.
   */
  admit(source: IpAddress, isValidated: boolean): boolean {
    const limiter = this.#limiter;
    if (limiter.exceeded('admitted', source) !== undefined) return false;
    const limit = limiter.exceeded('pending', source);
    if (limit === 'perAddress') {
      const isEvicted =
        limiter.evictOldest('pending', source) || (isValidated && limiter.evictOldest('validated', source));
      if (!isEvicted) return false;
    } else if (limit === 'total' && !this.#evictOne(source, isValidated)) return false;
    return this.#makeRoom(source, isValidated);
  }

  /** Room for one more endpoint that this side asks for. */
  makeRoom(source: IpAddress): boolean {
    return this.#makeRoom(source, true);
  }

  #makeRoom(source: IpAddress, isValidated: boolean): boolean {
    if (this.#byLocalId.size < this.#limits.endpoints) return true;
    return this.#limiter.evictOldest('timewait') || this.#evictOne(source, isValidated);
  }

  #evictOne(source: IpAddress, isValidated: boolean): boolean {
    const limiter = this.#limiter;
    if (limiter.evictOldest('pending')) return true;
    const first = limiter.oldest('validated');
    if (first === undefined) return false;
    const claim = limiter.count('validated', source.network) + (isValidated ? 0 : 1);
    if (limiter.count('validated', first.remote.network) <= claim) return false;
    limiter.evict(first);
    return true;
  }

  /** Evicts a half-open endpoint; no effect on others. Its peer is not told: an honest one asks again, and is new. */
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
    endpoint.isValidated = true;
    this.validatedAddresses.add(endpoint.remote, endpoint.remoteCaGuid);
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

/** Endpoints that this side asked for count only in TIMEWAIT. */
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
