/**
 * A disk in virtual time. What was not synced when the power fails is there in part: any of the writes, and any sectors of each. It can be slow or full, its sync can
 * fail, and it can lie: lose a write that it has synced, put one in a wrong place, or let bits rot.
 */

import { type RandomSource, randomInt, randomUnit } from '../../../src/core/random.js';
import type { EventQueue } from '../../lab/src/sim/event-queue.js';
import type { ExtentFile, ExtentFiles } from '../src/extent-files.js';

const SECTOR = 512;
const US = 1000;

interface Change {
  /** Undefined: the file is cut at `offset`. */
  readonly bytes: Buffer | undefined;
  readonly offset: number;
}

/** What is on the platter, and what reads see. */
class Content {
  durable: Buffer = Buffer.alloc(0);
  cached: Buffer = Buffer.alloc(0);
  changes: Change[] = [];
}

function changed(content: Buffer, { bytes, offset }: Change): Buffer {
  if (bytes === undefined) return content.length > offset ? content.subarray(0, offset) : content;
  const end = offset + bytes.length;
  const grown = content.length >= end ? content : Buffer.concat([content, Buffer.alloc(end - content.length)]);
  bytes.copy(grown, offset);
  return grown;
}

function flip({ durable, cached }: Content, at: number, bit: number): void {
  durable[at] ^= bit;
  if (at < cached.length) cached[at] ^= bit;
}

/** Shares of what goes wrong silently. */
export interface Lies {
  readonly lost: number;
  readonly misdirected: number;
}

export class SimDisk {
  readonly files = new Map<string, Content>();
  slowness = 1;
  capacityBytes = Number.POSITIVE_INFINITY;
  isSyncFailing = false;
  lies: Lies = { lost: 0, misdirected: 0 };
  #life = 0;
  readonly #events: EventQueue;
  readonly #random: RandomSource;

  constructor(events: EventQueue, random: RandomSource) {
    this.#events = events;
    this.#random = random;
  }

  get usedBytes(): number {
    let sum = 0;
    for (const { cached } of this.files.values()) sum += cached.length;
    return sum;
  }

  /** Whoever used the disk is gone, and nothing that it began ends any more. */
  powerLoss(): void {
    this.#life++;
    for (const content of this.files.values()) {
      for (const change of content.changes) if (randomUnit(this.#random) < 0.5) this.#tear(content, change);
      content.changes = [];
      content.cached = Buffer.from(content.durable);
    }
  }

  #tear(content: Content, { bytes, offset }: Change): void {
    if (bytes === undefined || randomUnit(this.#random) < 0.5) {
      content.durable = changed(content.durable, { bytes, offset });
      return;
    }
    for (let at = 0; at < bytes.length; at += SECTOR) {
      if (randomUnit(this.#random) < 0.3) continue;
      content.durable = changed(content.durable, { bytes: bytes.subarray(at, at + SECTOR), offset: offset + at });
    }
  }

  /** The process ends; the system, and what it has cached, does not. */
  kill(): void {
    this.#life++;
  }

  /** Everything is gone. */
  empty(): void {
    this.files.clear();
  }

  /** A copy of everything that is durable. */
  image(): Map<string, Buffer> {
    return new Map([...this.files].map(([name, { durable }]) => [name, Buffer.from(durable)]));
  }

  /** An old copy comes back. */
  restore(image: ReadonlyMap<string, Buffer>): void {
    this.files.clear();
    for (const [name, bytes] of image) {
      const content = new Content();
      content.durable = Buffer.from(bytes);
      content.cached = Buffer.from(bytes);
      this.files.set(name, content);
    }
  }

  /** A bit of some file changes by itself. */
  rot(): void {
    const names = [...this.files.keys()].filter((name) => name !== 'node');
    if (names.length === 0) return;
    const content = this.files.get(names[randomInt(this.#random, 0, names.length - 1)])!;
    if (content.durable.length === 0 || content.changes.length > 0) return;
    const at = randomInt(this.#random, 0, content.durable.length - 1);
    flip(content, at, 1 << randomInt(this.#random, 0, 7));
  }

  /** A bit of this byte changes by itself. */
  damage(name: string, at: number): void {
    flip(this.files.get(name)!, at, 1);
  }

  /** The disk for one life of a node. */
  open(): ExtentFiles {
    const life = this.#life;
    const take = <T>(us: number, work: () => T): Promise<T> =>
      new Promise((resolve, reject) => {
        const ns = us * this.slowness * (0.5 + randomUnit(this.#random)) * US;
        this.#events.after(ns, () => {
          if (this.#life !== life) return; // Nobody hears of it.
          try {
            resolve(work());
          } catch (error) {
            reject(error as Error);
          }
        });
      });
    const fileOf = (name: string): ExtentFile => {
      const content = this.files.get(name)!;
      return {
        size: async () => content.cached.length,
        read: (offset, length) => take(5, () => Buffer.from(content.cached.subarray(offset, offset + length))),
        write: (offset, bytes) => {
          const copy = Buffer.from(bytes);
          return take(20, () => this.#write(content, { bytes: copy, offset }));
        },
        sync: () => {
          const changes = content.changes;
          return take(100, () => this.#sync(content, changes));
        },
        truncate: async (length) => this.#write(content, { bytes: undefined, offset: length }),
        close: async () => {},
      };
    };
    return {
      list: async () => [...this.files.keys()],
      create: async (name) => {
        if (this.#life !== life) return new Promise<never>(() => {}); // Nobody hears of it.
        if (this.files.has(name))
          throw Object.assign(new Error(`EEXIST: file already exists, open '${name}'`), { code: 'EEXIST' });
        this.files.set(name, new Content());
        return fileOf(name);
      },
      open: async (name) => fileOf(name),
      remove: async (name) => {
        if (this.#life === life) this.files.delete(name);
      },
      rename: async (name, to) => {
        if (this.#life !== life) return;
        this.files.set(to, this.files.get(name)!);
        this.files.delete(name);
      },
      freeBytes: async () => Math.min(2 ** 40, Math.max(0, this.capacityBytes - this.usedBytes)),
    };
  }

  #write(content: Content, change: Change): void {
    const { bytes, offset } = change;
    if (bytes !== undefined) {
      const grown = Math.max(0, offset + bytes.length - content.cached.length);
      if (this.usedBytes + grown > this.capacityBytes)
        throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    }
    content.cached = changed(content.cached, change);
    content.changes.push(change);
  }

  /** `queue`: the changes at the time of the call are a beginning of it. */
  #sync(content: Content, queue: Change[]): void {
    if (this.isSyncFailing) {
      content.changes = []; // The system calls the pages clean.
      throw Object.assign(new Error('EIO: input/output error'), { code: 'EIO' });
    }
    if (content.changes !== queue) return;
    for (const change of queue) {
      if (change.bytes !== undefined && randomUnit(this.#random) < this.lies.lost) continue;
      if (change.bytes !== undefined && randomUnit(this.#random) < this.lies.misdirected) {
        const sectors = Math.floor(content.durable.length / SECTOR);
        const offset = SECTOR * randomInt(this.#random, 0, sectors);
        content.durable = changed(content.durable, { bytes: change.bytes, offset });
        content.cached = changed(content.cached, { bytes: change.bytes, offset });
        continue;
      }
      content.durable = changed(content.durable, change);
    }
    content.changes = [];
  }
}
