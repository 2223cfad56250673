import type { DiskDocument, DiskOp } from '../../verbs/estats/disk-document.js';
import { DISK_OPS } from '../../verbs/estats/disk-document.js';
import { opLatency } from '../../verbs/estats/op-latency.js';
import { RecentLatency } from '../../verbs/estats/recent-latency.js';
import type { BlockDevice, NotOwnerError, WriteOptions, WriteZeroesOptions } from './block-device.js';
import type { DiskIdentity } from './disk-identity.js';
import type { LeaseStore } from './lease-store.js';

class OpCounter {
  requests = 0;
  bytes = 0;
  errors = 0;
  readonly latency: RecentLatency;
  readonly #nowNs: () => number;

  constructor(nowNs: () => number) {
    this.#nowNs = nowNs;
    this.latency = new RecentLatency(nowNs);
  }

  async follow<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    const startNs = this.#nowNs();
    this.requests++;
    let outcome: T;
    try {
      outcome = await work();
    } catch (error) {
      this.errors++;
      throw error;
    }
    this.bytes += bytes;
    this.latency.record(this.#nowNs() - startNs);
    return outcome;
  }
}

type Counters = Readonly<Record<DiskOp, OpCounter>>;

function newCounters(nowNs: () => number): Counters {
  return Object.fromEntries(DISK_OPS.map((op) => [op, new OpCounter(nowNs)])) as Record<DiskOp, OpCounter>;
}

export class WatchedDisk implements BlockDevice {
  readonly blockBytes: number;
  readonly refresh?: NonNullable<BlockDevice['refresh']>;
  readonly blockStatus?: NonNullable<BlockDevice['blockStatus']>;
  readonly prefetch?: NonNullable<BlockDevice['prefetch']>;
  readonly checkpoint?: NonNullable<BlockDevice['checkpoint']>;
  readonly view?: () => BlockDevice;
  readonly readChecked?: NonNullable<BlockDevice['readChecked']>;
  readonly readOnly: boolean;
  readonly writeVerifier?: bigint;
  readonly leaseStore?: LeaseStore;
  readonly #disk: BlockDevice;
  readonly #counters: Counters;

  constructor(disk: BlockDevice, nowNs: () => number, counters = newCounters(nowNs)) {
    this.#disk = disk;
    this.blockBytes = disk.blockBytes;
    if (disk.view !== undefined) this.view = () => new WatchedDisk(disk.view!(), nowNs, this.#counters);
    if (disk.writeVerifier !== undefined) this.writeVerifier = disk.writeVerifier;
    if (disk.leaseStore !== undefined) this.leaseStore = disk.leaseStore;
    this.readOnly = disk.readOnly === true;
    if (disk.readChecked !== undefined) {
      this.readChecked = (offset, length, into) =>
        this.#counters.read.follow(length, () => disk.readChecked!(offset, length, into));
    }
    if (disk.refresh !== undefined) this.refresh = disk.refresh.bind(disk);
    if (disk.checkpoint !== undefined) this.checkpoint = disk.checkpoint.bind(disk);
    if (disk.prefetch !== undefined) this.prefetch = disk.prefetch.bind(disk);
    if (disk.blockStatus !== undefined) this.blockStatus = disk.blockStatus.bind(disk);
    this.#counters = counters;
  }

  /** As the disk has it now: an owner that comes back has another generation. */
  get identity(): DiskIdentity | undefined {
    return this.#disk.identity;
  }

  get notOwner(): NotOwnerError | undefined {
    return this.#disk.notOwner;
  }

  get sizeBytes(): number {
    return this.#disk.sizeBytes;
  }

  read(offset: number, length: number, into: Uint8Array): Promise<void> {
    return this.#counters.read.follow(length, () => this.#disk.read(offset, length, into));
  }

  write(offset: number, data: Uint8Array, options?: WriteOptions): Promise<void> {
    return this.#counters.write.follow(data.length, () => this.#disk.write(offset, data, options));
  }

  flush(): Promise<void> {
    return this.#counters.flush.follow(0, () => this.#disk.flush());
  }

  trim(offset: number, length: number): Promise<void> {
    return this.#counters.trim.follow(length, () => this.#disk.trim(offset, length));
  }

  writeZeroes(offset: number, length: number, options?: WriteZeroesOptions): Promise<void> {
    return this.#counters.zero.follow(length, () => this.#disk.writeZeroes(offset, length, options));
  }

  close(): Promise<void> {
    return this.#disk.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get activity(): Pick<DiskDocument, 'ops' | 'latency'> {
    return {
      ops: DISK_OPS.map((op) => {
        const { requests, bytes, errors } = this.#counters[op];
        return { op, requests, bytes, errors };
      }),
      latency: DISK_OPS.map((op) => opLatency(op, this.#counters[op].latency.histogram())).filter(
        ({ count }) => count > 0,
      ),
    };
  }
}
