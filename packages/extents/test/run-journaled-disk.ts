/**
 * The files of one node with a journal, beside a model of them, by a seed: they are written, synced, deleted and made again, several at once, while the power fails, the process
 * is killed, or a sync fails, also in the middle of a start. Each sector must then be as the last sync found it, or as a later write made it.
 */

import { type RandomSource, randomInt, randomUnit, SeededRandom } from '../../../src/core/random.js';
import { settle, until } from '../../../test/support/virtual-time.js';
import { EventQueue } from '../../lab/src/sim/event-queue.js';
import { virtualClock } from '../../lab/src/sim/virtual-clock.js';
import type { ExtentFile } from '../src/extent-files.js';
import { Journal } from '../src/journal.js';
import { JournaledFiles } from '../src/journaled-files.js';
import { SimDisk } from './sim-disk.js';

const SECTOR = 512;
const SECTORS = 48;
const FILES = 4;
const LIVES = 4;
const ROUNDS = 8;
const JOURNAL = 'journal';
const JOURNAL_BYTES = [16 << 10, 32 << 10, 256 << 10] as const;

/** Bugs to plant. */
export interface JournalBugs {
  /** The journal is not synced. */
  readonly believesJournal?: boolean;
  /** Files are not synced before the journal is used again. */
  readonly believesFiles?: boolean;
}

/** A file as it must be. */
class Model {
  /** What is in each sector, by the number of the write. 0: zeros. */
  readonly durable: number[] = new Array<number>(SECTORS).fill(0);
  /** What may be there instead. */
  readonly maybe: Set<number>[] = Array.from({ length: SECTORS }, () => new Set<number>());
  file!: ExtentFile;
}

/** What is wrong with what is read. */
export async function runJournaledDisk(seed: number, bugs: JournalBugs = {}): Promise<readonly string[]> {
  const seeds = new SeededRandom(seed);
  const events = new EventQueue();
  const home = new SimDisk(events, seeds.stream('home'));
  const device = new SimDisk(events, seeds.stream('device'));
  const bytes = JOURNAL_BYTES[seed % JOURNAL_BYTES.length];
  device.restore(new Map([[JOURNAL, Buffer.alloc(4096 + bytes)]]));
  return new Course({ events, home, device, random: seeds.stream('course'), bugs }).run();
}

interface CourseParts {
  readonly events: EventQueue;
  readonly home: SimDisk;
  readonly device: SimDisk;
  readonly random: RandomSource;
  readonly bugs: JournalBugs;
}

class Course {
  readonly #parts: CourseParts;
  readonly #models = new Map<string, Model>();
  readonly #problems: string[] = [];
  #files!: JournaledFiles;
  #writes = 0;
  #life = 0;
  /** The start whose journal the files need. */
  /** The marks of the journal that the folder has. */
  #used: string | undefined;
  #next: string | undefined;

  constructor(parts: CourseParts) {
    this.#parts = parts;
  }

  #int(min: number, max: number): number {
    return randomInt(this.#parts.random, min, max);
  }

  #isChance(share: number): boolean {
    return randomUnit(this.#parts.random) < share;
  }

  async run(): Promise<readonly string[]> {
    for (let k = 0; k < LIVES && this.#problems.length === 0; k++) {
      await this.#start();
      if (this.#problems.length > 0) break;
      if (k === 0) for (let n = 0; n < FILES; n++) await until(this.#parts.events, this.#create(`${n}`));
      else await this.#check();
      await this.#live();
    }
    if (this.#problems.length === 0) {
      await this.#start();
      if (this.#problems.length === 0) await this.#check();
    }
    return this.#problems;
  }

  /** Opens the journal; the power may fail meanwhile, again and again. */
  async #start(): Promise<void> {
    const { events } = this.#parts;
    while (this.#isChance(0.4)) {
      this.#open().catch(() => {}); // The next one says so.
      await this.#step(this.#int(1, 60));
      this.#crash(true);
    }
    await until(
      events,
      this.#open().catch((error: Error) => this.#problems.push(error.message)),
    );
  }

  async #open(): Promise<void> {
    const { events, home, device, bugs, random } = this.#parts;
    const owner = { cluster: 'c', node: 1, life: ++this.#life, used: this.#used, next: this.#next };
    const { sync, ...rest } = await device.open().open(JOURNAL);
    const file = { ...rest, sync: () => (bugs.believesJournal === true ? Promise.resolve() : sync()) };
    const files = home.open();
    const believing = async (opening: Promise<ExtentFile>): Promise<ExtentFile> => {
      const opened = await opening;
      return bugs.believesFiles === true ? { ...opened, sync: async () => {} } : opened;
    };
    const journal = await Journal.open({ file, clock: virtualClock(events), random, checkpointMs: 3 }, owner);
    const own = {
      ...files,
      create: (name: string) => believing(files.create(name)),
      open: (name: string) => believing(files.open(name)),
    };
    await journal.begin(own, {
      prepare: async (mark) => {
        this.#next = mark;
      },
      settle: async (mark) => {
        this.#used = mark;
        this.#next = undefined;
      },
    });
    this.#files = new JournaledFiles(own, journal);
  }

  #crash(isPowerLost: boolean): void {
    for (const disk of [this.#parts.home, this.#parts.device]) {
      if (isPowerLost) disk.powerLoss();
      else disk.kill();
      disk.isSyncFailing = false;
      disk.slowness = 1;
    }
  }

  /** So many events, and all that follows from them at once. */
  async #step(count: number): Promise<void> {
    for (let k = 0; k < count; k++) {
      this.#parts.events.step();
      await settle();
    }
  }

  async #create(name: string): Promise<void> {
    const model = new Model();
    model.file = await this.#files.create(name);
    this.#models.set(name, model);
  }

  /** Some rounds of requests side by side, the last of which is cut short. */
  async #live(): Promise<void> {
    const { events, home, device } = this.#parts;
    const failing = this.#isChance(0.2);
    for (let round = 0; round < ROUNDS; round++) {
      const isLast = round === ROUNDS - 1;
      if (this.#isChance(0.2)) (this.#isChance(0.5) ? home : device).slowness = this.#int(1, 30);
      if (failing && isLast) (this.#isChance(0.5) ? home : device).isSyncFailing = true;
      const requests = [...this.#models].map(([name, model]) => this.#request(name, model));
      const all = Promise.allSettled(requests);
      if (isLast) await this.#step(this.#int(1, 80));
      else await until(events, all);
    }
    this.#crash(failing || this.#isChance(0.6));
  }

  async #request(name: string, model: Model): Promise<void> {
    if (this.#isChance(0.1)) {
      this.#models.delete(name);
      await model.file.close();
      await this.#files.remove(name);
      return this.#create(name);
    }
    for (let count = this.#int(0, 3); count > 0; count--) {
      const from = this.#int(0, SECTORS - 1);
      const sectors = Math.min(this.#isChance(0.8) ? this.#int(1, 4) : this.#int(1, SECTORS), SECTORS - from);
      const number = ++this.#writes;
      for (let k = from; k < from + sectors; k++) model.maybe[k].add(number);
      await model.file.write(from * SECTOR, sectorsOf(number, sectors));
      for (let k = from; k < from + sectors; k++) last(model, k, number);
    }
    if (this.#isChance(0.7)) await this.#sync(model);
  }

  async #sync(model: Model): Promise<void> {
    await model.file.sync();
    for (const [k, maybe] of model.maybe.entries()) {
      const latest = [...maybe].at(-1);
      if (latest === undefined) continue;
      model.durable[k] = latest;
      maybe.clear();
    }
  }

  /** Each sector is one that may be there; what is there is made durable, as a node does before it counts on it. */
  async #check(): Promise<void> {
    const { events } = this.#parts;
    const names = await this.#files.list();
    for (const [name, model] of this.#models) {
      if (!names.includes(name)) {
        this.#problems.push(`file ${name} is gone`);
        continue;
      }
      model.file = await this.#files.open(name);
      const bytes = Buffer.concat([await until(events, model.file.read(0, SECTORS * SECTOR))], SECTORS * SECTOR);
      for (let k = 0; k < SECTORS; k++) {
        const sector = bytes.subarray(k * SECTOR, (k + 1) * SECTOR);
        const number = sector.readUInt32LE(0);
        const isWhole = sector.equals(sectorsOf(number, 1));
        if (!isWhole || (number !== model.durable[k] && !model.maybe[k].has(number)))
          this.#problems.push(
            `sector ${k} of file ${name} has ${isWhole ? number : 'garbage'}, not ${model.durable[k]}`,
          );
        model.maybe[k].clear();
        model.maybe[k].add(number);
      }
      await until(events, this.#sync(model));
    }
  }
}

/** The write is the youngest of those that may be there. */
function last(model: Model, sector: number, number: number): void {
  model.maybe[sector].delete(number);
  model.maybe[sector].add(number);
}

function sectorsOf(number: number, sectors: number): Buffer {
  const bytes = Buffer.alloc(sectors * SECTOR);
  for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32LE(number, at);
  return bytes;
}
