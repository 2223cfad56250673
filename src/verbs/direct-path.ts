/**
 * The direct path of a queue pair: WRITEs, READs and atomics of the peer's mapped regions are executed by the
 * requester, within `postSend`. Whatever it cannot do, or may not, takes the send queue to the NIC, so that errors are
 * those of the standard.
 */

import { IS_LITTLE_ENDIAN } from '../core/bytes.js';
import { NS_PER_MS } from '../core/units.js';
import { CopyView } from '../memory/mapped/copy-view.js';
import type { FoundGrant, GrantReader, ProcessName } from '../memory/mapped/grant-table.js';
import type { MappedPart } from '../memory/mapped/memory-mapping.js';
import { COUNTER } from '../memory/ring/counters.js';
import {
  ACCESS_LOCAL_WRITE,
  ACCESS_REMOTE_ATOMIC,
  ACCESS_REMOTE_READ,
  ACCESS_REMOTE_WRITE,
} from '../memory/ring/enums.js';
import type { Sge } from '../memory/ring/work-queue.js';
import type { MemoryGrants } from './memory-grants.js';
import type { MemoryRegion } from './memory-region.js';
import type { ProtectionDomain } from './protection-domain.js';
import type { SendWorkRequest } from './send-work-request.js';

/** What {@link DirectPath.execute} answers: the request has to take the send queue. */
export const NOT_DIRECT = -1;
const ATOMIC_BYTES = 8;
const U64_END = 1n << 64n;
/** Keys without a grant that are remembered. */
const MISSES_MAX = 1024;
/** How often a program that never lets the event loop turn learns that the peer has ended. */
const LIFE_CHECK_NS = 50 * NS_PER_MS;
/** Operations, and bytes, between two looks at the clock. */
const CLOCK_CHECK_OPERATIONS = 64;
const CLOCK_CHECK_BYTES = 16 << 20;

/** A region of the peer that is mapped here. */
interface MappedRegion {
  readonly grant: FoundGrant;
  readonly part: MappedPart;
  readonly view: CopyView;
}

export class DirectPath {
  readonly #grants: MemoryGrants;
  readonly #pd: ProtectionDomain;
  readonly #peer: ProcessName;
  readonly #reader: GrantReader;
  readonly #release: () => void;
  readonly #counters: Float64Array;
  /** What was executed here. */
  readonly copies = { operations: 0, bytes: 0 };
  readonly #mapped = new Map<number, MappedRegion>();
  /** Keys without a grant, and how many grants there had been. */
  readonly #misses = new Map<number, number>();
  #last: MappedRegion | undefined;
  #operationsLeft = 0;
  #bytesLeft = 0;
  #checkedNs = 0;

  constructor(
    pd: ProtectionDomain,
    grants: MemoryGrants,
    peer: ProcessName,
    { reader, release }: { readonly reader: GrantReader; release(): void },
  ) {
    this.#pd = pd;
    this.#grants = grants;
    this.#peer = peer;
    this.#reader = reader;
    this.#release = release;
    this.#counters = pd.device.link.counters;
  }

  /** Whether operations on the region of this key are copies. */
  maps(rkey: number): boolean {
    return this.#regionOf(rkey) !== undefined;
  }

  /** Executes the request: the bytes of its completion, or {@link NOT_DIRECT}, and nothing has happened. */
  execute(request: SendWorkRequest, maxSge: number, maxInlineBytes: number): number {
    switch (request.opcode) {
      case 'RDMA_WRITE':
        return request.inline === undefined
          ? this.#copy(request, ACCESS_REMOTE_WRITE, maxSge)
          : this.#writeInline(request, request.inline, maxInlineBytes);
      case 'RDMA_READ':
        return this.#copy(request, ACCESS_REMOTE_READ, maxSge);
      case 'ATOMIC_FETCH_AND_ADD':
      case 'ATOMIC_CMP_AND_SWP':
        return this.#atomic(request);
      default:
        return NOT_DIRECT;
    }
  }

  #regionOf(rkey: number): MappedRegion | undefined {
    const last = this.#last;
    if (last !== undefined && last.grant.rkey === rkey) return last;
    const known = this.#mapped.get(rkey) ?? this.#map(rkey);
    this.#last = known;
    return known;
  }

  #map(rkey: number): MappedRegion | undefined {
    const { changes } = this.#reader;
    if (this.#misses.get(rkey) === changes) return undefined;
    const grant = this.#reader.find(rkey);
    const mapped = grant === undefined ? undefined : this.#open(grant);
    if (mapped !== undefined) {
      this.#mapped.set(rkey, mapped);
      return mapped;
    }
    if (this.#misses.size === MISSES_MAX) this.#misses.clear();
    this.#misses.set(rkey, changes);
    return undefined;
  }

  #open(grant: FoundGrant): MappedRegion | undefined {
    const { fd, segmentBytes, offsetBytes, lengthBytes } = grant;
    const isWritable = (grant.access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)) !== 0;
    const part = this.#grants.mapping.open({
      pid: this.#peer.pid,
      fd,
      kind: 'region',
      segmentBytes,
      start: offsetBytes,
      bytes: lengthBytes,
      access: isWritable ? 'write' : 'read',
    });
    if (part === undefined) return undefined;
    // The descriptor was that of the region if the grant is still the same.
    if (this.#reader.isCurrent(grant)) {
      return { grant, part, view: new CopyView(part.bytes, grant.baseHigh, grant.baseLow) };
    }
    part.close();
    return undefined;
  }

  /** From here until `end` of the reader the grant is valid. Otherwise its mapping is gone. */
  #begin(region: MappedRegion, access: number): boolean {
    if ((region.grant.access & access) === 0 || !this.#isPeerAlive()) return false;
    if (this.#reader.begin(region.grant, access)) return true;
    if (!this.#reader.isCurrent(region.grant)) this.#forget(region);
    return false;
  }

  #forget(region: MappedRegion): void {
    const { grant, part } = region;
    if (this.#mapped.get(grant.rkey) !== region) return;
    this.#mapped.delete(grant.rkey);
    this.#last = undefined;
    part.close();
  }

  #isPeerAlive(): boolean {
    if (this.#operationsLeft-- > 0 && this.#bytesLeft > 0) return true;
    this.#operationsLeft = CLOCK_CHECK_OPERATIONS;
    this.#bytesLeft = CLOCK_CHECK_BYTES;
    const nowNs = this.#grants.clock.nowNs();
    if (nowNs - this.#checkedNs < LIFE_CHECK_NS) return true;
    if (this.#grants.mapping.hasEnded(this.#peer)) {
      this.#operationsLeft = 0;
      return false;
    }
    this.#checkedNs = nowNs;
    // The owner's memory is free once nobody maps it.
    for (const region of this.#mapped.values()) if (!this.#reader.isCurrent(region.grant)) this.#forget(region);
    return true;
  }

  /** The place of a local element in its region; undefined: the NIC says what is wrong with it. */
  #localView({ lkey }: Sge, needed: number): CopyView | undefined {
    const region = this.#pd.regions.get(lkey);
    if (region === undefined || (region.access & needed) !== needed) return undefined;
    return viewOf(region, this.#grants);
  }

  #copy(
    request: Extract<SendWorkRequest, { readonly opcode: 'RDMA_WRITE' | 'RDMA_READ' }>,
    access: number,
    maxSge: number,
  ): number {
    const { sges, remoteAddr } = request;
    if (sges === undefined || sges.length === 0 || sges.length > maxSge || !isAddress(remoteAddr)) return NOT_DIRECT;
    const region = this.#regionOf(request.rkey);
    if (region === undefined) return NOT_DIRECT;
    const writes = access === ACCESS_REMOTE_WRITE;
    const needed = writes ? 0 : ACCESS_LOCAL_WRITE;
    let total = 0;
    for (const sge of sges) {
      const local = this.#localView(sge, needed);
      if (local === undefined || typeof sge.addr !== 'bigint' || local.offsetOf(sge.addr, sge.length) < 0)
        return NOT_DIRECT;
      total += sge.length;
    }
    const { view } = region;
    let at = view.offsetOf(remoteAddr, total);
    if (at < 0 || !this.#begin(region, access)) return NOT_DIRECT;
    for (const sge of sges) {
      const local = this.#localView(sge, needed)!;
      const offset = local.offsetOf(sge.addr, sge.length);
      if (writes) local.copyTo(offset, view, at, sge.length);
      else view.copyTo(at, local, offset, sge.length);
      at += sge.length;
    }
    this.#reader.end();
    return this.#done(writes ? COUNTER.direct_writes : COUNTER.direct_reads, total);
  }

  #writeInline(
    { remoteAddr, rkey }: { readonly remoteAddr: bigint; readonly rkey: number },
    data: Uint8Array,
    maxInlineBytes: number,
  ): number {
    if (!(data instanceof Uint8Array) || data.length > maxInlineBytes || !isAddress(remoteAddr)) return NOT_DIRECT;
    const region = this.#regionOf(rkey);
    if (region === undefined) return NOT_DIRECT;
    const at = region.view.offsetOf(remoteAddr, data.length);
    if (at < 0 || !this.#begin(region, ACCESS_REMOTE_WRITE)) return NOT_DIRECT;
    region.view.bytes.set(data, at);
    this.#reader.end();
    return this.#done(COUNTER.direct_writes, data.length);
  }

  #atomic(
    request: Extract<SendWorkRequest, { readonly opcode: 'ATOMIC_FETCH_AND_ADD' | 'ATOMIC_CMP_AND_SWP' }>,
  ): number {
    const { sges, remoteAddr } = request;
    const operands = request.opcode === 'ATOMIC_FETCH_AND_ADD' ? [request.add, 0n] : [request.compare, request.swap];
    if (sges?.length !== 1 || sges[0].length !== ATOMIC_BYTES || ![remoteAddr, ...operands].every(isAddress))
      return NOT_DIRECT;
    const [sge] = sges;
    const region = this.#regionOf(request.rkey);
    const local = this.#localView(sge, ACCESS_LOCAL_WRITE);
    if (region === undefined || local === undefined || typeof sge.addr !== 'bigint' || !IS_LITTLE_ENDIAN)
      return NOT_DIRECT;
    const offset = local.offsetOf(sge.addr, ATOMIC_BYTES);
    const at = region.view.offsetOf(remoteAddr, ATOMIC_BYTES);
    const { longs } = region.view;
    if (offset < 0 || at < 0 || at % ATOMIC_BYTES !== 0 || remoteAddr % 8n !== 0n || longs === undefined)
      return NOT_DIRECT;
    if (!this.#begin(region, ACCESS_REMOTE_ATOMIC)) return NOT_DIRECT;
    const index = at / ATOMIC_BYTES;
    const [first, second] = operands;
    const before =
      request.opcode === 'ATOMIC_FETCH_AND_ADD'
        ? Atomics.add(longs, index, first)
        : Atomics.compareExchange(longs, index, first, second);
    this.#reader.end();
    new DataView(local.bytes.buffer, local.bytes.byteOffset + offset).setBigUint64(0, before, true);
    return this.#done(COUNTER.direct_atomics, ATOMIC_BYTES);
  }

  #done(counter: number, bytes: number): number {
    this.#bytesLeft -= bytes;
    this.#counters[counter]++;
    this.#counters[COUNTER.direct_bytes] += bytes;
    this.copies.operations++;
    this.copies.bytes += bytes;
    return bytes;
  }

  /** Nothing is executed here from now on. */
  close(): void {
    for (const { part } of this.#mapped.values()) part.close();
    this.#mapped.clear();
    this.#last = undefined;
    this.#reader.leave();
    this.#release();
  }
}

function isAddress(value: bigint): boolean {
  return typeof value === 'bigint' && value >= 0n && value < U64_END;
}

function viewOf(region: MemoryRegion, { mapping }: MemoryGrants): CopyView | undefined {
  // Memory that the program has given to another thread has no bytes any more.
  if (region.isClosed || region.length === 0) return undefined;
  if (region.copyView === undefined) {
    const { buffer, byteOffset, length } = region.bytes;
    const { high, low } = region.base;
    region.copyView = new CopyView(new Uint8Array(mapping.copyable(buffer), byteOffset, length), high, low);
  }
  return region.copyView;
}
