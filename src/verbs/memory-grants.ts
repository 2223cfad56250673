/**
 * Regions of a device that peers of its memory domain can map, and those of peers that it maps. See
 * memory/mapped/grant-table.ts for how a grant is revoked.
 */

import { type Clock, pause } from '../core/clock.js';
import { RoceError } from '../core/errors.js';
import { markShared } from '../core/shared-buffers.js';
import { NS_PER_MS, NS_PER_S } from '../core/units.js';
import {
  GRANT_TABLE_BYTES,
  GrantReader,
  GrantTable,
  type ProcessName,
  type RegionGrant,
  type SlotSecret,
} from '../memory/mapped/grant-table.js';
import type { MappedPart, MemoryMapping } from '../memory/mapped/memory-mapping.js';

/** A copy takes microseconds, that of 2 GiB less than a second. */
const COPY_POLL_NS = NS_PER_MS;
const COPY_LIMIT_NS = 5 * NS_PER_S;

/** Says where a queue pair's grants are; goes to the peer in the exchange. */
export interface MappingOffer extends ProcessName {
  /** Descriptor of that process that names the table. */
  readonly fd: number;
  /** Of the queue pair in the table. */
  readonly slot: number;
  readonly secret: SlotSecret;
}

interface PeerTable {
  readonly part: MappedPart;
  readonly key: string;
  users: number;
}

export class MemoryGrants {
  readonly mapping: MemoryMapping;
  readonly clock: Clock;
  /** How long a peer may copy before the owner no longer waits: longer only if it is stopped in the middle. */
  copyLimitNs: number = COPY_LIMIT_NS;
  #own:
    | { readonly table: GrantTable; readonly segment: NonNullable<ReturnType<MemoryMapping['createTable']>> }
    | undefined;
  #isClosed = false;
  readonly #peers = new Map<string, PeerTable>();
  readonly #hasEnded = (process: ProcessName) => this.mapping.hasEnded(process);

  constructor(mapping: MemoryMapping, clock: Clock) {
    this.mapping = mapping;
    this.clock = clock;
  }

  #table(): GrantTable | undefined {
    if (this.#own === undefined && !this.#isClosed) {
      const segment = this.mapping.createTable(GRANT_TABLE_BYTES);
      if (segment === undefined) return undefined;
      this.#own = { table: new GrantTable(segment.memory), segment };
    }
    return this.#own?.table;
  }

  /**
   * The NIC must expect from now on that peers change this memory, if it can be mapped. Call it before the NIC does.
   */
  letPeersWrite(memory: ArrayBufferLike): void {
    if (this.mapping.descriptorOf(memory) !== undefined) markShared(memory);
  }

  /** The number of the grant; undefined for memory that cannot be mapped. */
  grant(memory: ArrayBufferLike, region: Omit<RegionGrant, 'fd' | 'segmentBytes'>): number | undefined {
    const fd = this.mapping.descriptorOf(memory);
    if (fd === undefined) return undefined;
    return this.#table()?.grant({ ...region, fd, segmentBytes: memory.byteLength });
  }

  /**
   * Resolves when every copy from or to the region has ended; no new one begins. Rejects with ERR_ROCE_BUSY if a peer
   * does not end its copy; the call can be repeated.
   */
  async revoke(region: number): Promise<void> {
    const { table } = this.#own!;
    table.revoke(region);
    const copier = await this.#waitFor(() => table.copierOf(region, this.#hasEnded));
    if (copier !== undefined) throw this.#stillCopied(copier);
    table.release(region);
  }

  #stillCopied({ pid }: ProcessName): RoceError {
    return new RoceError(
      'ERR_ROCE_BUSY',
      `process ${pid} has not ended its copy from or to this region for ${this.copyLimitNs / NS_PER_S} s`,
      'let it continue (SIGCONT) if it is stopped, or end it, and close the region again',
    );
  }

  /** A slot for a queue pair; undefined where there is none. Peers may do nothing through it yet. */
  openQueuePair(qpn: number, pd: number): MappingOffer | undefined {
    const secret: SlotSecret = [this.mapping.u32(), this.mapping.u32()];
    const slot = this.#table()?.openQueuePair(qpn, pd, secret, this.#hasEnded);
    return slot === undefined ? undefined : { ...this.mapping.process, fd: this.#own!.segment.fd, slot, secret };
  }

  /** What the peer may do, flags of `Access`; undefined: nothing, as the queue pair does not execute requests. */
  setAccess(slot: number, access: number | undefined): void {
    this.#own!.table.setAccess(slot, access);
  }

  /**
   * Resolves when the peer, whose access has been withdrawn, copies nothing through the queue pair. A peer that does
   * not end its copy is not waited for longer than the limit: the region that it copies to cannot be deregistered.
   */
  async quiesce(slot: number): Promise<void> {
    const { table } = this.#own!;
    await this.#waitFor(() => table.copierThrough(slot, this.#hasEnded));
  }

  closeQueuePair(slot: number): void {
    this.#own!.table.closeQueuePair(slot);
  }

  /** The process that copies still at the limit. */
  async #waitFor(copier: () => ProcessName | undefined): Promise<ProcessName | undefined> {
    const endNs = this.clock.nowNs() + this.copyLimitNs;
    for (;;) {
      const found = copier();
      const nowNs = this.clock.nowNs();
      if (found === undefined || nowNs >= endNs) return found;
      await pause(this.clock, COPY_POLL_NS);
    }
  }

  /**
   * The grants of a peer's queue pair; undefined: they cannot be mapped. Call `release` after their last use.
   */
  openPeer(qpn: number, offer: MappingOffer): { readonly reader: GrantReader; release(): void } | undefined {
    const { pid, started, fd, slot, secret } = offer;
    if (this.mapping.hasEnded(offer)) return undefined;
    const key = `${pid} ${started} ${fd}`;
    const peer = this.#peers.get(key) ?? this.#openTable(key, offer);
    if (peer === undefined) return undefined;
    const { process } = this.mapping;
    const reader = GrantReader.take(peer.part.bytes.buffer, slot, { qpn, secret }, process);
    peer.users++;
    const release = () => this.#release(peer);
    if (reader !== undefined) return { reader, release };
    release();
    return undefined;
  }

  #openTable(key: string, { pid, fd }: MappingOffer): PeerTable | undefined {
    const bytes = GRANT_TABLE_BYTES;
    const part = this.mapping.open({ pid, fd, kind: 'grants', segmentBytes: bytes, start: 0, bytes, access: 'write' });
    if (part === undefined) return undefined;
    const peer: PeerTable = { part, key, users: 0 };
    this.#peers.set(key, peer);
    return peer;
  }

  #release(peer: PeerTable): void {
    peer.users--;
    if (peer.users > 0) return;
    this.#peers.delete(peer.key);
    peer.part.close();
  }

  /** Every region and queue pair has ended. */
  close(): void {
    this.#isClosed = true;
    this.#own?.segment.close();
    this.#own = undefined;
  }
}
