/**
 * One run of a disk over a simulated cluster by its seed. Owners write, read, trim, copy the disk and follow each other, by their death or by force, while nodes,
 * disks and the network fail. Then everything heals, and the disk, its snapshots and its clones are held against the models beside them.
 */

import { type RandomSource, randomInt, randomUnit } from '../../../../src/core/random.js';
import { BlockDeviceError } from '../../../../src/storage-rpc/disk/block-device.js';
import { settle } from '../../../../test/support/virtual-time.js';
import { DISK_BLOCK_BYTES } from '../../src/disk/block-map.js';
import type { DiskParts } from '../../src/disk/disk-parts.js';
import { copyDisk, createDisk, openDisk, removeDisk } from '../../src/disk/disks.js';
import type { StreamDisk } from '../../src/disk/stream-disk.js';
import { ExtentReader } from '../../src/extent-reader.js';
import type { Manager, Nodes } from '../../src/messages.js';
import { Cluster, COMBINER, EXTENT_BYTES, READ_BYTES, TIMING } from '../cluster.js';
import { FAULT_KINDS, Faults } from '../faults.js';
import { isRedundant } from '../redundancy.js';
import { bytesOf, ModelDisk, type Moment, SECTOR, valueIn } from './model-disk.js';

const NAME = 'disk';
const BLOCKS = 48;
const SECTORS_A_BLOCK = DISK_BLOCK_BYTES / SECTOR;
const SECTORS = BLOCKS * SECTORS_A_BLOCK;
const STEPS = 70;
const FAULTS = 7;
const HEALING_MS = 6000;
const EVENTS_MAX = 400_000;
/** Every fault that passes by itself has passed by then. Disks that are full, fail or are too slow for any call are well when everything heals. */
const OPENINGS_MAX = 100;

/** What was found wrong, and what the run met. */
export interface DiskVerdict {
  readonly problems: string[];
  readonly acknowledged: number;
  readonly owners: number;
  readonly fenced: number;
  readonly checkpoints: number;
  readonly freed: number;
  readonly moved: number;
  readonly snapshots: number;
  readonly clones: number;
  readonly events: readonly string[];
}

/** A program that has the disk, or had it. It ends at once when it is killed. */
interface Owner {
  readonly name: string;
  readonly parts: DiskParts;
  isAlive: boolean;
  disk: StreamDisk | undefined;
}

interface Copy {
  readonly name: string;
  readonly isSnapshot: boolean;
  readonly from: Moment;
  readonly to: Moment;
}

/** `twist` plants a bug. */
export async function runDiskSeed(seed: number, twist: (cluster: Cluster) => void = () => {}): Promise<DiskVerdict> {
  const cluster = new Cluster(seed);
  twist(cluster);
  const course = new DiskCourse(cluster, seed);
  let isDone = false;
  const run = course.run().finally(() => {
    isDone = true;
  });
  run.catch(() => {});
  for (let count = 0; !isDone; count++) {
    await settle();
    if (isDone) break;
    if (count > EVENTS_MAX) return course.verdict(['did not settle']);
    if (!cluster.events.step()) return course.verdict(['nothing moves']);
  }
  return course.verdict(
    await run.then(
      () => [],
      (error: Error) => [error.message],
    ),
  );
}

class DiskCourse {
  readonly #cluster: Cluster;
  readonly #random: RandomSource;
  readonly #seed: number;
  readonly #model = new ModelDisk(SECTORS);
  readonly #problems: string[] = [];
  readonly #events: string[] = [];
  readonly #copies: Copy[] = [];
  readonly #pending = new Set<Promise<void>>();
  #owner: Owner | undefined;
  #isOver = false;
  #owners = 0;
  #acknowledged = 0;
  #fenced = 0;
  #clones = 0;
  readonly #sum = { checkpoints: 0, freed: 0, moved: 0 };

  constructor(cluster: Cluster, seed: number) {
    this.#cluster = cluster;
    this.#random = cluster.seeds.stream('disk course');
    this.#seed = seed;
  }

  verdict(more: readonly string[]): DiskVerdict {
    return {
      problems: [...this.#problems, ...more],
      acknowledged: this.#acknowledged,
      owners: this.#owners,
      fenced: this.#fenced,
      ...this.#sum,
      snapshots: this.#copies.length,
      clones: this.#clones,
      events: this.#events,
    };
  }

  #int(min: number, max: number): number {
    return randomInt(this.#random, min, max);
  }

  #note(text: string): void {
    this.#events.push(`${Math.round(this.#cluster.events.nowNs / 1e6)} ms ${text}`);
  }

  async run(): Promise<void> {
    await this.#cluster.start();
    await this.#cluster.sleep(50);
    await createDisk(this.#program('maker').parts, {
      name: NAME,
      sizeBytes: BLOCKS * DISK_BLOCK_BYTES,
      owner: 'maker',
    });
    const kind = FAULT_KINDS[this.#seed % FAULT_KINDS.length];
    const faults = new Faults(this.#cluster, this.#cluster.seeds.stream('faults'), { kind });
    const causing = this.#causeFaults(faults);
    await this.#use();
    this.#isOver = true;
    await causing;
    this.#note('heals');
    await faults.end();
    const isWhole = await faults.becomes(() => isRedundant(this.#cluster), HEALING_MS);
    if (!isWhole) this.#problems.push('redundancy did not come back');
    await this.#check();
  }

  async #causeFaults(faults: Faults): Promise<void> {
    for (let k = 0; k < FAULTS && !this.#isOver; k++) {
      await this.#cluster.sleep(this.#int(1, 60));
      const fault = faults.next();
      await faults.cause(fault, faults.duration(), () => faults.other(fault.machine));
      this.#note(`${fault.name} ${fault.machine.name}`);
    }
  }

  /** A program with a way to the cluster, which is cut when it is killed. */
  #program(name: string): Owner {
    const never = new Promise<never>(() => {});
    const owner: Owner = { name, isAlive: true, disk: undefined, parts: undefined as never };
    const whileAlive = async <T>(call: () => Promise<T>): Promise<T> => {
      if (!owner.isAlive) return never;
      try {
        const value = await call();
        return owner.isAlive ? value : never;
      } catch (error) {
        if (!owner.isAlive) return never;
        throw error;
      }
    };
    const inner = { nodes: this.#cluster.nodesFrom('client'), manager: this.#cluster.managerFrom('client') };
    const nodes: Nodes = { call: (...args) => whileAlive(() => inner.nodes.call(...args)) };
    const manager: Manager = { call: (...args) => whileAlive(() => inner.manager.call(...args)) };
    const random = this.#cluster.seeds.stream(name);
    const common = { nodes, manager, clock: this.#cluster.clock, random, timing: TIMING };
    return Object.assign(owner, {
      parts: { ...common, reader: new ExtentReader({ ...common, combiner: COMBINER, readBytes: READ_BYTES }) },
    });
  }

  /** Another owner: the last one is dead, or does not know that it has lost the disk. Resolves with whether there is one. */
  async #takeOver(): Promise<boolean> {
    const before = this.#owner;
    if (before?.disk !== undefined) {
      const { checkpoints, freed, moved } = before.disk.counters;
      this.#sum.checkpoints += checkpoints;
      this.#sum.freed += freed;
      this.#sum.moved += moved;
      if (randomUnit(this.#random) < 0.6) before.isAlive = false;
    }
    this.#note(`${before?.name ?? 'nobody'} ${before?.isAlive === true ? 'is fenced' : 'is dead'}`);
    for (let opening = 1; ; opening++) {
      const owner = this.#program(`owner${++this.#owners}`);
      this.#owner = owner;
      try {
        owner.disk = await openDisk(owner.parts, { name: NAME, owner: owner.name, takeOver: true });
        break;
      } catch (error) {
        this.#note(`${owner.name} cannot open: ${(error as Error).message}`);
        if (opening === OPENINGS_MAX) return false;
        await this.#cluster.sleep(30);
      }
    }
    this.#onOwner();
    if (before?.disk !== undefined && before.isAlive) this.#startZombie(before.disk);
    return true;
  }

  /** What the last owner had under way has taken effect by now, or never will. */
  readonly #lost = new Set<() => void>();
  #onOwner(): void {
    for (const lost of this.#lost) lost();
    this.#lost.clear();
    this.#note(`${this.#owner!.name} has the disk`);
  }

  /** An owner that has lost the disk goes on. Nothing that it writes may be acknowledged. */
  #startZombie(disk: StreamDisk): void {
    this.#fenced++;
    void this.#write(disk, false);
  }

  async #use(): Promise<void> {
    for (let k = 0; k < STEPS; k++) {
      const isLost = this.#owner?.disk === undefined || this.#owner.disk.failure !== undefined;
      if ((isLost || randomUnit(this.#random) < 0.05) && !(await this.#takeOver())) break;
      const disk = this.#owner!.disk!;
      const work = this.#step(disk);
      this.#pending.add(work);
      void work.finally(() => this.#pending.delete(work));
      if (randomUnit(this.#random) < 0.3) await this.#cluster.sleep(this.#int(1, 20));
      else if (randomUnit(this.#random) < 0.7) await Promise.race([work, this.#cluster.sleep(60)]);
    }
    await Promise.race([Promise.all(this.#pending), this.#cluster.sleep(300)]);
  }

  #step(disk: StreamDisk): Promise<void> {
    const dice = randomUnit(this.#random);
    if (dice < 0.6) return this.#write(disk, true);
    if (dice < 0.68) return this.#clear(disk);
    if (dice < 0.72) return disk.compact().catch(() => {}); // Nodes or the manager are out of reach.
    return dice < 0.96 ? this.#read(disk) : this.#copy();
  }

  #range(): { first: number; count: number } {
    const isWhole = randomUnit(this.#random) < 0.8;
    const unit = isWhole ? SECTORS_A_BLOCK : 1;
    const count = unit * this.#int(1, isWhole ? 6 : 12);
    return { first: unit * this.#int(0, (SECTORS - count) / unit - 1), count };
  }

  async #write(disk: StreamDisk, isOwner: boolean): Promise<void> {
    const { first, count } = this.#range();
    const value = this.#model.newValue();
    const write = this.#model.begin(first, count, value);
    if (isOwner) this.#lost.add(write.lost);
    else write.lost(); // It comes after the next owner: it never takes effect.
    try {
      await disk.write(first * SECTOR, bytesOf(value, count));
    } catch (error) {
      if (!(error instanceof BlockDeviceError)) this.#problems.push(`a write failed with ${error}`);
      return;
    }
    this.#acknowledged++;
    if (!isOwner) this.#problems.push(`an owner that was fenced had write ${value} acknowledged`);
    write.acknowledged();
  }

  async #clear(disk: StreamDisk): Promise<void> {
    const { first, count } = this.#range();
    const write = this.#model.begin(first, count, 0);
    this.#lost.add(write.lost);
    try {
      await disk.writeZeroes(first * SECTOR, count * SECTOR);
      write.acknowledged();
    } catch {}
  }

  async #read(disk: StreamDisk): Promise<void> {
    const { first, count } = this.#range();
    const owner = this.#owner;
    const from = this.#model.now();
    const bytes = Buffer.alloc(count * SECTOR);
    try {
      await disk.read(first * SECTOR, bytes.length, bytes);
    } catch {
      return; // All replicas are out of reach for now.
    }
    if (owner === this.#owner) this.#compare(NAME, this.#model, { first, bytes, from, to: this.#model.now() });
  }

  #compare(
    what: string,
    model: ModelDisk,
    { first, bytes, from, to }: { first: number; bytes: Buffer; from: Moment; to: Moment },
  ): void {
    for (let k = 0; k < bytes.length / SECTOR; k++) {
      const value = valueIn(bytes, k);
      if (value >= 0 && model.mayBe(first + k, value, from, to)) continue;
      this.#problems.push(
        `sector ${first + k} of ${what} reads as ${value} between ${from} and ${to}; writes: ${model.describe(first + k)}`,
      );
      return;
    }
  }

  /** A snapshot or a clone, by a program that is not the owner. */
  async #copy(): Promise<void> {
    const isSnapshot = randomUnit(this.#random) < 0.6;
    const name = `copy${this.#copies.length}-${this.#model.now()}`;
    const from = this.#model.now();
    try {
      await copyDisk(this.#program(name).parts, { source: NAME, name, isSnapshot, owner: name });
    } catch (error) {
      this.#note(`no ${name}: ${(error as Error).message}`);
      return;
    }
    this.#note(`made ${name}`);
    this.#copies.push({ name, isSnapshot, from, to: this.#model.now() });
  }

  async #readAll(disk: StreamDisk, what: string): Promise<Buffer> {
    const bytes = Buffer.alloc(SECTORS * SECTOR);
    try {
      await disk.read(0, bytes.length, bytes);
    } catch (error) {
      this.#problems.push(`${what} cannot be read: ${(error as Error).message}`);
    }
    return bytes;
  }

  async #check(): Promise<void> {
    if (!(await this.#takeOver())) {
      this.#problems.push('the disk has no owner after everything has healed');
      return;
    }
    const { disk } = this.#owner!;
    const from = this.#model.now();
    const bytes = await this.#readAll(disk!, NAME);
    this.#compare(NAME, this.#model, { first: 0, bytes, from, to: from });
    const contents: Buffer[] = [];
    for (const copy of this.#copies) contents.push(await this.#checkCopy(copy));
    await this.#overwrite(disk!);
    // What the parent has overwritten and cleaned, and what a clone has written, is nothing to a snapshot.
    for (const [k, copy] of this.#copies.entries()) {
      const again = await this.#open(copy.name);
      if (again !== undefined && !(await this.#readAll(again, copy.name)).equals(contents[k]))
        this.#problems.push(`${copy.name} has changed`);
      await again?.close();
    }
    await disk!.close();
    await this.#checkSpace();
  }

  async #open(name: string): Promise<StreamDisk | undefined> {
    const program = this.#program(`reader of ${name}`);
    try {
      return await openDisk(program.parts, { name, owner: program.name, takeOver: true });
    } catch (error) {
      this.#problems.push(`${name} cannot be opened: ${(error as Error).message}`);
      return undefined;
    }
  }

  /** Resolves with what a copy has in the end. */
  async #checkCopy({ name, isSnapshot, from, to }: Copy): Promise<Buffer> {
    const disk = await this.#open(name);
    if (disk === undefined) return Buffer.alloc(0);
    const bytes = await this.#readAll(disk, name);
    this.#compare(name, this.#model, { first: 0, bytes, from, to });
    if (isSnapshot) {
      const written = await disk.write(0, Buffer.alloc(SECTOR)).catch((error: BlockDeviceError) => error.errno);
      if (written !== 'EPERM') this.#problems.push(`the snapshot ${name} can be written`);
      return bytes;
    }
    this.#clones++;
    const mine = bytesOf(this.#model.newValue(), 3 * SECTORS_A_BLOCK);
    const at = this.#int(0, SECTORS - mine.length / SECTOR) * SECTOR;
    await disk.write(at, mine);
    mine.copy(bytes, at);
    await disk.close();
    return bytes;
  }

  /** Writes the whole disk some times; the space of what was there before comes back. */
  async #overwrite(disk: StreamDisk): Promise<void> {
    const expected = Buffer.alloc(SECTORS * SECTOR);
    const rounds = 12;
    for (let round = 0; round < rounds; round++) {
      for (let block = 0; block < BLOCKS; block += 2) {
        // What is left alone keeps extents of which little else is needed.
        if (round > 0 && round < rounds - 1 && randomUnit(this.#random) < 0.3) continue;
        if (round === rounds - 1 && block % 6 !== 0) continue;
        const bytes = bytesOf(this.#model.newValue(), 2 * SECTORS_A_BLOCK);
        bytes.copy(expected, block * DISK_BLOCK_BYTES);
        await disk.write(block * DISK_BLOCK_BYTES, bytes);
      }
    }
    await disk.compact();
    const { checkpoints, freed, moved } = disk.counters;
    this.#sum.checkpoints += checkpoints;
    this.#sum.freed += freed;
    this.#sum.moved += moved;
    if (!(await this.#readAll(disk, NAME)).equals(expected))
      this.#problems.push('the disk does not read as it was overwritten');
  }

  /** With its copies gone, the disk has little more than what it needs, and the nodes have nothing that no disk needs. */
  async #checkSpace(): Promise<void> {
    const { parts } = this.#program('cleaner');
    for (const { name } of this.#copies) {
      try {
        await removeDisk(parts, name);
      } catch (error) {
        this.#problems.push(`${name} cannot be deleted: ${(error as Error).message}`);
      }
    }
    const disk = await this.#open(NAME);
    await disk?.compact();
    await disk?.close();
    await this.#cluster.sleep(400);
    const { streams } = await parts.manager.call('status', {}, 1000);
    for (const { stream, sealedBytes } of streams) {
      const isLog = stream.endsWith('log');
      const most = (isLog ? (BLOCKS * DISK_BLOCK_BYTES * 1.15) / 0.6 : 0) + 6 * EXTENT_BYTES;
      if (stream.startsWith(`${NAME}.`) && sealedBytes > most)
        this.#problems.push(`${stream} has ${sealedBytes} bytes, and at most ${most} were expected`);
    }
    const used = new Set(
      (await this.#cluster.metadata.list('stream/')).flatMap(
        ({ value }) => (JSON.parse(value) as { extents: number[] }).extents,
      ),
    );
    const kept = await this.#cluster.metadata.list('extent/');
    if (kept.length !== used.size)
      this.#problems.push(`${kept.length} extents are kept, and streams have ${used.size}`);
  }
}
