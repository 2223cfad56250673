/**
 * One run of the cluster by its seed: an owner appends, faults come and go, owners follow each other; then everything heals, and all that was promised is checked.
 */

import { type RandomSource, randomInt, randomUnit } from '../../../src/core/random.js';
import { settle } from '../../../test/support/virtual-time.js';
import type { ExtentReader } from '../src/extent-reader.js';
import type { ExtentPlace } from '../src/messages.js';
import type { ExtentRecord } from '../src/metadata-schema.js';
import { dataIn } from '../src/record.js';
import type { Location, StreamWriter } from '../src/stream-writer.js';
import { Cluster, type ClusterOptions } from './cluster.js';
import { FAULT_KINDS, type FaultKind, Faults } from './faults.js';
import { filesOf, isRedundant, stopSome } from './redundancy.js';

const STREAM = 'disk';
const APPENDS = 45;
const FAULTS = 7;
const HEALING_MS = 6000;
/** So long nobody need become the owner before everything heals: all three replicas of an extent may have disks that are full, fail, or are too slow for any call. */
const OWNERLESS_MS = 3000;

/** What was found wrong, and what the run met. */
export interface Verdict {
  readonly problems: string[];
  readonly acked: number;
  readonly seals: number;
  readonly copies: number;
  readonly codings: number;
  readonly rebuilds: number;
  readonly reconstructed: number;
  readonly repaired: number;
  readonly failovers: number;
  readonly refusedDisks: number;
  readonly hedges: number;
  /** Terms of leading managers, and transactions whose senders did not hear of them. */
  readonly terms: number;
  readonly unknown: number;
  readonly faults: readonly string[];
}

interface Attempt {
  readonly writer: number;
  readonly sequence: number;
  readonly data: Buffer;
  location: Location | undefined;
}

/**
 * `twist` plants a bug. Seeds are of three kinds: one disk lies, and nobody else loses power; any machine loses power, its disk or its connections; or both are
 * left out and the disks are full, slow or fail.
 */
export async function runSeed(
  seed: number,
  twist: (cluster: Cluster) => void = () => {},
  options: ClusterOptions = {},
): Promise<Verdict> {
  const cluster = new Cluster(seed, options);
  twist(cluster);
  const course = new Course(cluster, seed);
  let isDone = false;
  const run = course.run().finally(() => {
    isDone = true;
  });
  run.catch(() => {});
  for (let count = 0; !isDone; count++) {
    await settle();
    if (isDone) break;
    if (count > 200_000) return course.verdict(['did not settle']);
    if (!cluster.events.step()) return course.verdict(['nothing moves']);
  }
  await run;
  return course.verdict([]);
}

class Course {
  readonly #cluster: Cluster;
  readonly #random: RandomSource;
  readonly #kind: FaultKind;
  readonly #attempts: Attempt[] = [];
  readonly #problems: string[] = [];
  /** Faults, in words. */
  readonly #told: string[] = [];
  readonly #lengths = new Map<string, number>();
  #isOver = false;
  #owners = 0;
  #faults!: Faults;
  #writer: StreamWriter | undefined;
  #failovers = 0;
  #hedges = 0;
  #reconstructed = 0;

  constructor(cluster: Cluster, seed: number) {
    this.#cluster = cluster;
    this.#random = cluster.seeds.stream('course');
    this.#kind = FAULT_KINDS[seed % FAULT_KINDS.length];
  }

  verdict(more: readonly string[]): Verdict {
    const nodes = this.#cluster.machines.flatMap(({ node }) => node ?? []);
    const {
      seals = 0,
      copies = 0,
      codings = 0,
      rebuilds = 0,
      refusedDisks = 0,
    } = this.#cluster.manager?.counters ?? {};
    return {
      problems: [...this.#problems, ...this.#cluster.store.problems, ...more],
      acked: this.#attempts.filter(({ location }) => location !== undefined).length,
      seals,
      copies,
      codings,
      rebuilds,
      reconstructed: this.#reconstructed,
      refusedDisks,
      repaired: nodes.reduce((sum, { counters }) => sum + counters.repaired, 0),
      failovers: this.#failovers,
      hedges: this.#hedges,
      terms: this.#cluster.terms,
      unknown: this.#cluster.store.unknown,
      faults: this.#told,
    };
  }

  async run(): Promise<void> {
    const { metadata } = this.#cluster;
    metadata.watch('extent/', (key) => void this.#checkLength(key));
    await this.#cluster.start();
    await this.#cluster.managerFrom('client').call('createStream', { stream: STREAM }, 1000);
    this.#faults = new Faults(this.#cluster, this.#random, { kind: this.#kind, losesDisks: true });
    const faults = this.#causeFaults();
    await this.#append();
    this.#isOver = true;
    await faults;
    await this.#heal();
    await this.#check();
  }

  /** A sealed extent has one length for ever, and every replica that answered and had lost nothing has all of it. */
  async #checkLength(key: string): Promise<void> {
    const entry = await this.#cluster.metadata.get(key);
    if (entry === undefined) return;
    const { sealed, epoch } = JSON.parse(entry.value) as ExtentRecord;
    const before = this.#lengths.get(key);
    if (before !== undefined && sealed !== before)
      this.#problems.push(`${key} was sealed at ${before} and at ${sealed}`);
    if (sealed === undefined || before !== undefined) return;
    this.#lengths.set(key, sealed);
    // Otherwise the only whole copy may be lost, and with it what the stream is said to have.
    const fenced = this.#cluster.fencedLengths.get(`${Number(key.slice('extent/'.length))} ${epoch}`) ?? [];
    if (fenced.some((length) => length < sealed))
      this.#problems.push(`${key} is sealed at ${sealed}; its replicas had ${fenced}`);
  }

  async #append(): Promise<void> {
    const pending: Promise<void>[] = [];
    for (let k = 0; k < APPENDS; k++) {
      if (this.#writer === undefined || this.#writer.failure !== undefined || randomUnit(this.#random) < 0.03)
        if (!(await this.#takeOver(OWNERLESS_MS))) break;
      const writer = this.#writer!;
      const length =
        randomUnit(this.#random) < 0.8 ? randomInt(this.#random, 1, 5000) : randomInt(this.#random, 5000, 20_000);
      const data = Buffer.alloc(length, `${writer.epoch}.${k} `);
      const attempt: Attempt = { writer: writer.epoch, sequence: this.#sequenceOf(writer), data, location: undefined };
      this.#attempts.push(attempt);
      const appended = writer.append(data).then(
        (location) => this.#onAck(attempt, location),
        () => {},
      );
      pending.push(appended);
      if (randomUnit(this.#random) < 0.3) await this.#cluster.sleep(randomInt(this.#random, 1, 30));
      else if (randomUnit(this.#random) < 0.5) await Promise.race([appended, this.#cluster.sleep(60)]);
    }
    await Promise.race([Promise.all(pending), this.#cluster.sleep(300)]);
  }

  #sequenceOf(writer: StreamWriter): number {
    return this.#attempts.filter((attempt) => attempt.writer === writer.epoch).length;
  }

  #onAck(attempt: Attempt, location: Location): void {
    attempt.location = location;
  }

  /** Makes an owner of the stream; resolves with whether there is one in time. */
  async #takeOver(limitMs = Number.POSITIVE_INFINITY): Promise<boolean> {
    this.#failovers += this.#writer?.counters.failovers ?? 0;
    const stopNs = this.#cluster.events.nowNs + limitMs * 1e6;
    while (this.#cluster.events.nowNs < stopNs) {
      try {
        const { writer } = await this.#cluster.writer(STREAM, `owner${++this.#owners}`);
        this.#writer = writer;
        return true;
      } catch {
        await this.#cluster.sleep(20);
      }
    }
    return false;
  }

  async #causeFaults(): Promise<void> {
    for (let k = 0; k < FAULTS && !this.#isOver; k++) {
      await this.#cluster.sleep(randomInt(this.#random, 1, 40));
      const fault = this.#faults.next();
      const { name, machine } = fault;
      this.#told.push(`${Math.round(this.#cluster.events.nowNs / 1e6)} ms ${name} ${machine.name}`);
      const other = this.#faults.other(machine);
      await this.#faults.cause(fault, this.#faults.duration(), () => other);
    }
  }

  async #heal(): Promise<void> {
    await this.#faults.end();
    await this.#takeOver(OWNERLESS_MS);
    await this.#decide();
    await this.#takeOver();
    if (await this.#faults.becomes(() => this.#isWhole(), HEALING_MS)) return;
    const extents = await this.#cluster.metadata.list('extent/');
    const disks = this.#cluster.machines.map(
      ({ number, disk }) => `node ${number} has ${[...disk.files.keys()].join(' ')}`,
    );
    this.#problems.push(
      `redundancy did not come back: ${extents.map(({ key, value }) => `${key} ${value}`).join('; ')}; ${disks.join('; ')}`,
    );
  }

  /** What the operator does once everything is back that can come back. */
  async #decide(): Promise<void> {
    await this.#cluster.sleep(300);
    const manager = this.#cluster.managerFrom('client');
    for (;;) {
      const refusal = await manager.call('accept', { extents: [] }, 1000).then(() => undefined, String);
      if (refusal === undefined) return;
      // Machines that lost everything have new numbers, and the old ones never confirm the metadata.
      if (refusal.includes('--trust-metadata')) await this.#cluster.trustMetadata();
      await this.#cluster.sleep(50);
    }
  }

  async #isWhole(): Promise<boolean> {
    if (!(await isRedundant(this.#cluster))) return false;
    // Space is accounted for: nodes have the replicas and fragments that the manager knows, and nothing else.
    const extents = await this.#cluster.metadata.list('extent/');
    return this.#cluster.machines.every(({ disk, number }) => {
      const names = [...disk.files.keys()].filter((name) => name !== 'node' && !name.endsWith('.deleted')).sort();
      const mine = extents.flatMap(({ key, value }) =>
        filesOf(Number(key.slice('extent/'.length)), JSON.parse(value) as ExtentRecord, number),
      );
      return names.join() === mine.sort().join();
    });
  }

  async #check(): Promise<void> {
    const { extents } = await this.#cluster.managerFrom('client').call('locate', { stream: STREAM }, 1000);
    const sealed = extents.filter((extent) => extent.sealed !== undefined);
    await this.#checkRecords(sealed, this.#cluster.reader());
    this.#failovers += this.#writer?.counters.failovers ?? 0;
    await this.#checkReplicas(sealed);
    if (this.#cluster.code === undefined || this.#problems.length > 0) return;
    // Any three nodes may go, and everything that is coded is there as before.
    stopSome(this.#cluster, this.#random, 3);
    const coded = sealed.filter((extent) => extent.coded !== undefined);
    await this.#checkRecords(coded, this.#cluster.reader(), (location) =>
      coded.some(({ extent }) => extent === location.extent),
    );
  }

  /** Every record is there once, in order, with its bytes, and can be read by its place. */
  async #checkRecords(
    extents: readonly ExtentPlace[],
    reader: ExtentReader,
    isIn: (location: Location) => boolean = () => true,
  ): Promise<void> {
    const bySequence = new Map(this.#attempts.map((attempt) => [`${attempt.writer}.${attempt.sequence}`, attempt]));
    const seen = new Map<Attempt, number>();
    let last = { writer: 0, sequence: -1 };
    try {
      for await (const { head, bytes } of reader.scan(extents)) {
        const attempt = bySequence.get(`${head.writer}.${head.sequence}`);
        if (attempt === undefined) {
          this.#problems.push(`a record ${head.writer}.${head.sequence} that nobody appended`);
          continue;
        }
        if (!dataIn(bytes, head).equals(attempt.data))
          this.#problems.push(`other bytes in ${head.writer}.${head.sequence}`);
        seen.set(attempt, (seen.get(attempt) ?? 0) + 1);
        const isLater = head.writer > last.writer || (head.writer === last.writer && head.sequence > last.sequence);
        if (!isLater) this.#problems.push(`${head.writer}.${head.sequence} follows ${last.writer}.${last.sequence}`);
        last = head;
      }
    } catch (error) {
      this.#problems.push(`the stream cannot be read: ${(error as Error).message}`);
    }
    for (const attempt of this.#attempts) {
      const { writer, sequence, location, data } = attempt;
      const count = seen.get(attempt) ?? 0;
      if (count > 1) this.#problems.push(`${writer}.${sequence} is there ${count} times`);
      if (location === undefined || !isIn(location)) continue;
      if (count === 0) this.#problems.push(`${writer}.${sequence} was acknowledged and is not there`);
      try {
        const blocks = await reader.read(location.extent, location.offset, 0, Math.ceil(data.length / 4096));
        if (!blocks.data.equals(data)) this.#problems.push(`other bytes read for ${writer}.${sequence}`);
      } catch (error) {
        this.#problems.push(`${writer}.${sequence} cannot be read: ${(error as Error).message}`);
      }
    }
    this.#hedges += reader.counters.hedges;
    this.#reconstructed += reader.counters.reconstructed;
  }

  /** After a pass of the scrubbers every replica by itself has everything. */
  async #checkReplicas(
    extents: ReadonlyArray<{
      readonly extent: number;
      readonly replicas: ReadonlyArray<{ readonly node: number; readonly address: string }>;
      readonly sealed?: number;
    }>,
  ): Promise<void> {
    const stopNs = this.#cluster.events.nowNs + HEALING_MS * 1e6;
    for (const { extent, replicas, sealed } of extents) {
      for (const place of replicas) {
        for (;;) {
          const node = this.#cluster.machineOf(place)?.node;
          try {
            for (let offset = 0; offset < sealed!; ) {
              const { records } = await node!.handle('fetch', { extent, offset, bytesMax: 1 << 20 });
              if (records.length === 0) throw new Error(`it ends at ${offset}, and not at ${sealed}`);
              offset += records.length;
            }
            break;
          } catch (error) {
            if (this.#cluster.events.nowNs > stopNs) {
              this.#problems.push(
                `node ${place.node} does not have extent ${extent} whole: ${(error as Error).message}`,
              );
              break;
            }
            await this.#cluster.sleep(30);
          }
        }
      }
    }
  }
}
