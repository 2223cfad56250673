/**
 * A disk of a server: under a name, with its limit and its leases, and closed to new requests while it is exchanged.
 */

import { checkBoolean, checkKind, checkObject, ifGiven } from '../../core/arguments.js';
import { RoceError } from '../../core/errors.js';
import { PromiseMutex } from '../../core/promise-mutex.js';
import type { BlockDevice } from '../disk/block-device.js';
import { checkDiskName } from '../disk/disk-identity.js';
import { isSameLease, type LeaseRecord } from '../disk/lease-store.js';
import { checkDiskLimit, type DiskLimit, RateLimit } from '../fair/rate-limit.js';
import { DiskLease, type LeaseClaim, type LeasedSession, type LeaseTerms, type LeaseVerdict } from './disk-lease.js';

/** A disk under a name. */
export interface NamedDisk {
  /** Clients ask for it by this name: 1 to 63 bytes of UTF-8. */
  readonly name: string;
  /** The disk itself. The caller closes it. */
  readonly device: BlockDevice;
  /** Clients can only read. Default false. */
  readonly readOnly?: boolean | undefined;
  /** Limits for all clients together. Default: unlimited. */
  readonly limit?: DiskLimit | undefined;
}

export function checkServedDevice(device: BlockDevice): void {
  checkKind('a disk', device, typeof device?.read === 'function', 'a BlockDevice');
}

/** A session, as far as its disk is concerned. */
export interface DiskSession extends LeasedSession {
  /** UUID of the client. */
  readonly owner: string;
  readonly executing: number;
  /** Ends it because its lease is another's. Resolves when nothing of it is at the disk, or ever will be. */
  fence(): Promise<void>;
}

export class ServedDisk {
  readonly name: string;
  readonly readOnly: boolean;
  readonly limit: RateLimit | undefined;
  readonly lease: DiskLease<DiskSession>;
  #device: BlockDevice;
  #using = 0;
  #pause: Promise<void> | undefined;
  #onUnused: (() => void) | undefined;
  #isRemoved = false;
  #fencing = 0;
  #storedLease: LeaseRecord | undefined;
  readonly #storing = new PromiseMutex();

  constructor({ name, device, readOnly = false, limit }: NamedDisk, terms: LeaseTerms, rate?: RateLimit) {
    this.name = name;
    this.readOnly = readOnly;
    this.limit = rate ?? (limit && new RateLimit(limit));
    this.#storedLease = device.leaseStore?.initial;
    this.lease = new DiskLease(terms, this.#storedLease);
    this.#device = device;
  }

  again(terms: LeaseTerms): ServedDisk {
    const { name, readOnly, limit, device } = this;
    return new ServedDisk({ name, device, readOnly }, terms, limit);
  }

  get device(): BlockDevice {
    return this.#device;
  }

  get isRemoved(): boolean {
    return this.#isRemoved;
  }

  async use<T>(work: (device: BlockDevice) => Promise<T>): Promise<T> {
    while (this.#pause !== undefined) await this.#pause;
    this.#using++;
    try {
      return await work(this.#device);
    } finally {
      this.#using--;
      if (this.#using === 0) this.#onUnused?.();
    }
  }

  /** Rejects as `open`; then the old one stays. */
  async exchange(open: (old: BlockDevice) => Promise<BlockDevice>): Promise<void> {
    while (this.#pause !== undefined) await this.#pause;
    let resume: () => void = () => {};
    this.#pause = new Promise((resolve) => {
      resume = resolve;
    });
    try {
      await this.#unused();
      this.#device = await open(this.#device);
    } finally {
      this.#pause = undefined;
      resume();
    }
  }

  /** Resolves when no request is at the disk. */
  async remove(): Promise<void> {
    this.#isRemoved = true;
    await this.#unused();
  }

  /**
   * It is granted to another client only when requests of the earlier ones can no longer reach the disk; until then
   * they hold it. A grant is stored if the disk supports it: rejects with a BlockDeviceError if that fails.
   */
  async claim(claim: LeaseClaim, nowNs: number, onTakenOver: () => void): Promise<LeaseVerdict<DiskSession>> {
    const access = this.readOnly ? 'read' : claim.access;
    const verdict = this.lease.claim({ ...claim, access }, nowNs);
    if (verdict.outcome !== 'granted') return verdict;
    const { evicted } = verdict;
    if (evicted.length > 0) {
      onTakenOver();
      const mayTakeLong = evicted.some(({ executing }) => executing > 0);
      const fencing = Promise.allSettled(evicted.map((session) => session.fence()));
      this.#fencing++;
      const fenced = fencing.then(() => {
        this.#fencing--;
      });
      if (!mayTakeLong) await fenced;
    }
    if (access === 'read') return verdict;
    await this.#storeLease();
    if (this.#fencing === 0) return verdict;
    return { outcome: 'leased', holder: { label: 'a request of its last writer', isConnected: false, endsNs: nowNs } };
  }

  /** The possible end of its lease is also stored; if that fails, the restarted server waits for it once. */
  release(session: DiskSession): void {
    this.lease.release(session.owner, session);
    this.#storeLease().catch(() => {});
  }

  #storeLease(): Promise<void> {
    return this.#storing.run(async () => {
      const { record } = this.lease;
      if (record === undefined || isSameLease(record, this.#storedLease)) return;
      await this.use(async ({ leaseStore }) => leaseStore?.save(record));
      this.#storedLease = record;
    });
  }

  #unused(): Promise<void> {
    if (this.#using === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onUnused = () => {
        this.#onUnused = undefined;
        resolve();
      };
    });
  }
}

export function checkNamedDisk(disk: NamedDisk): void {
  checkObject('a disk', disk, '{ name, device }');
  const { name, device, readOnly, limit } = disk;
  checkServedDevice(device);
  ifGiven(readOnly, (value) => checkBoolean('readOnly', value));
  if (name === '') throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'a disk has no name', 'give it one');
  checkDiskName(name);
  if (limit !== undefined) checkDiskLimit(limit);
}
