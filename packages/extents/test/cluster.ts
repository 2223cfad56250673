/** A cluster in virtual time: nodes with their disks, a manager that can be killed, and a network that loses, delays and cuts. */

import type { Clock } from '../../../src/core/clock.js';
import { type RandomSource, SeededRandom } from '../../../src/core/random.js';
import { unpunctualClock } from '../../../test/support/unpunctual-clock.js';
import { EventQueue } from '../../lab/src/sim/event-queue.js';
import { virtualClock } from '../../lab/src/sim/virtual-clock.js';
import { Candidate } from '../src/candidate.js';
import { combinerOf, portableCombine } from '../src/coding/combiner.js';
import type { CodeName } from '../src/coding/erasure-code.js';
import type { ExtentFile } from '../src/extent-files.js';
import { ExtentNode } from '../src/extent-node.js';
import { ExtentReader } from '../src/extent-reader.js';
import type { ExtentStore } from '../src/extent-store.js';
import { FollowingManager } from '../src/following-manager.js';
import { LEADER_KEY, type LeaderMetadata } from '../src/leader-metadata.js';
import { MemoryMetadata } from '../src/memory-metadata.js';
import type { Manager, ManagerMethods, NodePlace, Nodes } from '../src/messages.js';
import type { Metadata, MetadataEntry } from '../src/metadata.js';
import { openStore } from '../src/open-store.js';
import { RepairLoop } from '../src/repair-loop.js';
import type { ReplicaLength } from '../src/replica.js';
import { StreamManager } from '../src/stream-manager.js';
import { StreamWriter } from '../src/stream-writer.js';
import { ClusterNetwork } from './cluster-network.js';
import { SharedStore } from './shared-store.js';
import { SimDisk } from './sim-disk.js';
import { StoppableClock } from './stoppable-clock.js';

/** Nodes of a cluster that codes nothing. */
const NODES = 5;
export const EXTENT_BYTES = 48 * 1024;
/** Shorter than many records, so that they are put together of several pieces. */
export const READ_BYTES = 6000;
const MANAGER = 'manager';
const CLUSTER = 'simulated';
export const COMBINER = combinerOf(portableCombine);
const MS = 1e6;

export const TIMING = {
  callMs: 40,
  copyMs: 400,
  reportMs: 40,
  scrubMs: 60,
  downMs: 150,
  forgetMs: 60_000,
  keepDeletedMs: 60_000,
  checkpointMs: 100,
  repairMs: 50,
  hedgeMs: 4,
  retryMs: 15,
  searchMs: 10,
  leaseMs: 300,
  codeAfterMs: 60,
  leaderMs: 160,
  storeMs: 60,
};

/** What a cluster has. */
export interface ClusterOptions {
  readonly nodes?: number;
  /** Sealed extents are coded with it. */
  readonly code?: CodeName;
  /** Managers that share a store; default: one that has it alone. */
  readonly managers?: number;
  /** After which silence of one of them the others are asked; infinite: never. */
  readonly searchMs?: number;
  /** After which silence a node without data is forgotten; default: longer than a run. */
  readonly forgetMs?: number;
  /** Bytes of the journal that each node has on a disk of its own; default: none. */
  readonly journalBytes?: number;
  /** How long deleted files stay in quarantine; default: longer than a run. */
  readonly keepDeletedMs?: number;
}

/** One of several managers. */
export interface ManagerProcess {
  readonly name: string;
  /** What it knows of time; it can stand still. */
  readonly clock: StoppableClock;
  candidate: Candidate | undefined;
  life: number;
}

/** One machine with a disk; the node on it lives and dies. */
export interface Machine {
  readonly name: string;
  disk: SimDisk;
  /** Where its journal is, if it has one. */
  readonly journal: SimDisk | undefined;
  /** Of the node, as the disk keeps it. */
  number: number;
  node: ExtentNode | undefined;
  life: number;
  /** Its operator says that the folder may be an older copy. */
  trustsFolder?: boolean;
}

const JOURNAL = 'journal';
/** No restored folder has a larger number of a node. */
const RESTORED_NODES = 1000;
/** Time between checkpoints: a few in a run of a cluster. */
const CHECKPOINT_MS = 120;

/** Makes the journal an empty one. */
export function emptyJournal(journal: SimDisk | undefined, bytes: number): void {
  journal?.restore(new Map([[JOURNAL, Buffer.alloc(bytes)]]));
}

export class Cluster {
  readonly events = new EventQueue();
  readonly clock: Clock;
  readonly seeds: SeededRandom;
  readonly network: ClusterNetwork;
  readonly machines: Machine[] = [];
  #metadata: MemoryMetadata;
  /** The only manager, or what leads at one of several. */
  manager: StreamManager | undefined;
  /** Several managers; empty: there is one. */
  readonly managers: ManagerProcess[] = [];
  /** The only manager rebuilds its metadata from the nodes. */
  isRecovering = false;
  /** The operator has started the managers with `--trust-metadata`. */
  #trustsMetadata = false;
  /** A manager goes on to answer when its lease has ended by its own clock, and asks nobody whether it leads. */
  believesItLeads = false;
  readonly store: SharedStore;
  terms = 0;
  /** Machines whose disks have been emptied. */
  readonly emptied = new Set<Machine>();
  /** The primary believes that the last secondary has the record: acknowledged after two of three. */
  believesLastSecondary = false;
  /** Lengths that replicas which had lost nothing gave when they were fenced, by extent and epoch. */
  readonly fencedLengths = new Map<string, number[]>();
  /** Who makes fragments believes that one is durable which is not. */
  believesFragments = false;
  /** Journals are not synced before a change counts as durable. */
  believesJournals = false;
  /** Files of extents are not synced before their journal is used again. */
  believesExtentFiles = false;
  /** A manager that starts codes with it. */
  code: CodeName | undefined;
  readonly #journalBytes: number | undefined;
  readonly #searchMs: number;
  readonly #keepDeletedMs: number;
  readonly #managerTiming: typeof TIMING;
  #upkeep: RepairLoop | undefined;
  #managerLife = 0;
  #lastNode = 0;
  #readers = 0;

  constructor(seed: number, options: ClusterOptions = {}) {
    const { nodes = NODES, code, managers = 1, searchMs = TIMING.searchMs, forgetMs = TIMING.forgetMs } = options;
    this.#journalBytes = options.journalBytes;
    this.#searchMs = searchMs;
    this.#keepDeletedMs = options.keepDeletedMs ?? TIMING.keepDeletedMs;
    this.#managerTiming = { ...TIMING, forgetMs };
    this.code = code;
    this.seeds = new SeededRandom(seed);
    const clock = virtualClock(this.events);
    // In one run of four timers fire early, late and together.
    this.clock = seed % 4 === 3 ? unpunctualClock(clock, this.seeds.stream('clock')) : clock;
    this.network = new ClusterNetwork(this.events, this.seeds.stream('network'));
    this.#metadata = new MemoryMetadata(this.clock);
    this.store = new SharedStore(this.#metadata, this.clock, this.network, TIMING.storeMs);
    for (let k = 0; managers > 1 && k < managers; k++)
      this.managers.push({
        name: `${MANAGER}${k}`,
        clock: new StoppableClock(this.events),
        candidate: undefined,
        life: 0,
      });
    for (let k = 0; k < nodes; k++) {
      const name = `machine${k}`;
      const disk = new SimDisk(this.events, this.seeds.stream(name));
      const journal =
        this.#journalBytes === undefined ? undefined : new SimDisk(this.events, this.seeds.stream(`${name} journal`));
      emptyJournal(journal, this.#journalBytes ?? 0);
      this.machines.push({ name, disk, journal, number: 0, node: undefined, life: 0 });
    }
  }

  async start(): Promise<void> {
    await this.store.commit({ compare: [], put: [{ key: 'cluster', value: JSON.stringify(CLUSTER) }] });
    if (this.managers.length === 0) await this.startManager();
    for (const process of this.managers) this.startCandidate(process);
    await Promise.all(this.machines.map((machine) => this.startNode(machine)));
  }

  /** What everybody agrees on, to look at. */
  get metadata(): Metadata {
    return this.#metadata;
  }

  /** The folder of the only manager as it is now. */
  imageOfMetadata(): Promise<readonly MetadataEntry[]> {
    return this.#metadata.list('');
  }

  /** An earlier state of the folder comes back. Only while the manager does not run. */
  async restoreMetadata(entries: readonly MetadataEntry[]): Promise<void> {
    this.#metadata = new MemoryMetadata(this.clock);
    this.#lastNode = RESTORED_NODES;
    await this.#metadata.commit({ compare: [], put: entries });
  }

  async startManager(): Promise<void> {
    const life = ++this.#managerLife;
    const manager = new StreamManager({
      metadata: this.#metadataOf(life),
      nodes: this.nodesFrom(MANAGER),
      clock: this.clock,
      random: this.seeds.stream(`manager${life}`),
      timing: this.#managerTiming,
      extentBytes: EXTENT_BYTES,
      code: this.code,
      isRecovering: this.isRecovering,
      trustsMetadata: this.#trustsMetadata,
      confirmLead: async () => {},
      managers: async () => [],
    });
    await manager.start();
    if (life !== this.#managerLife) return;
    this.manager = manager;
    this.#upkeep = new RepairLoop(manager);
    this.#upkeep.start();
  }

  killManager(): void {
    this.#managerLife++;
    this.manager = undefined;
    this.#upkeep?.stop();
  }

  /** The operator starts the managers again, and says that the metadata is the latest. */
  async trustMetadata(): Promise<void> {
    this.#trustsMetadata = true;
    if (this.managers.length === 0) {
      this.killManager();
      await this.startManager();
    }
    for (const process of this.managers) {
      this.killCandidate(process);
      this.startCandidate(process);
    }
  }

  /** Starts one of several managers. */
  startCandidate(process: ManagerProcess): void {
    const life = ++process.life;
    const { name } = process;
    const random = this.seeds.stream(`${name} ${life}`);
    const candidate: Candidate = new Candidate({
      store: this.store.from(name, () => process.life === life),
      clock: process.clock,
      address: name,
      life: `${name} ${life}`,
      timing: { leaderMs: TIMING.leaderMs, retryMs: TIMING.retryMs },
      wallMs: () => this.events.nowNs / MS,
      lead: (metadata) => this.#leaderOf(name, metadata, { random, candidate }),
    });
    process.candidate = candidate;
    candidate.start();
  }

  #leaderOf(
    name: string,
    metadata: LeaderMetadata,
    { random, candidate }: { readonly random: RandomSource; readonly candidate: Candidate },
  ) {
    const nodes = this.nodesFrom(name);
    const isAlive = () => this.managers.some((one) => one.candidate === candidate);
    const manager = new StreamManager({
      metadata,
      nodes: { call: (...request) => (isAlive() ? nodes.call(...request) : new Promise<never>(() => {})) },
      clock: this.clock,
      random,
      timing: this.#managerTiming,
      extentBytes: EXTENT_BYTES,
      code: this.code,
      trustsMetadata: this.#trustsMetadata,
      confirmLead: () => (this.believesItLeads ? Promise.resolve() : metadata.confirm()),
      managers: () => candidate.managers(),
    });
    const upkeep = new RepairLoop(manager);
    this.terms++;
    return {
      start: async () => {
        await manager.start();
        if (!metadata.isOver) upkeep.start();
        this.manager = manager;
      },
      handle: manager.handle.bind(manager),
      stop: () => upkeep.stop(),
    };
  }

  /** The process of a manager ends at once; what it has sent is on its way. */
  killCandidate(process: ManagerProcess): void {
    process.life++;
    void process.candidate?.stop();
    process.candidate = undefined;
  }

  /** The one that leads, by its own clock. */
  get leading(): ManagerProcess | undefined {
    return this.managers.find(({ candidate }) => candidate?.isLeading === true);
  }

  /** A manager that was killed changes nothing any more. */
  #metadataOf(life: number): Metadata {
    const never = new Promise<never>(() => {});
    const alive = <A extends unknown[], T>(call: (...args: A) => Promise<T>) => {
      return (...args: A): Promise<T> => (life === this.#managerLife ? call(...args) : never);
    };
    const inner = this.#metadata;
    return {
      get: alive((key: string) => inner.get(key)),
      list: alive((prefix: string) => inner.list(prefix)),
      commit: alive((transaction: Parameters<Metadata['commit']>[0]) => inner.commit(transaction)),
      renew: alive((key: string, version: number, ttlMs: number) => inner.renew(key, version, ttlMs)),
      watch: (prefix, onChange) => inner.watch(prefix, onChange),
      close: async () => {},
    };
  }

  /** Starts the node of a machine. One whose disk is refused as an old copy, or whose journal is refused, gets empty ones. */
  async startNode(machine: Machine): Promise<void> {
    const life = ++machine.life;
    for (;;) {
      const store = await this.#openStore(machine).catch(() => undefined);
      if (life !== machine.life) return;
      if (store === undefined) {
        this.emptyDisks(machine);
        continue;
      }
      machine.number = store.identity.node;
      const node = new ExtentNode({
        store,
        nodes: this.nodesFrom(machine.name),
        manager: this.managerFrom(machine.name),
        combiner: COMBINER,
        clock: this.clock,
        random: this.seeds.stream(`${machine.name} ${life}`),
        address: machine.name,
        domain: machine.name,
        folder: machine.name,
        trustsFolder: machine.trustsFolder === true,
        timing: { ...TIMING, keepDeletedMs: this.#keepDeletedMs },
      });
      machine.node = node;
      try {
        await node.start();
        return;
      } catch {
        if (life !== machine.life) return;
        machine.disk.kill();
        machine.journal?.kill();
        this.emptyDisks(machine);
      }
    }
  }

  async #openStore({ name: machine, disk, journal, life }: Machine): Promise<ExtentStore> {
    const files = disk.open();
    const parts = {
      manager: this.managerFrom(machine),
      folder: machine,
      callMs: TIMING.callMs,
      registerNode: async () => ({ node: ++this.#lastNode, cluster: CLUSTER }),
    };
    if (journal === undefined) return openStore({ ...parts, files });
    const believing = async (file: Promise<ExtentFile>, believes: () => boolean): Promise<ExtentFile> => {
      const { sync, ...rest } = await file;
      return { ...rest, sync: () => (believes() ? Promise.resolve() : sync()) };
    };
    const isExtent = (name: string) => name.endsWith('.extent') && this.believesExtentFiles;
    return openStore({
      ...parts,
      files: {
        ...files,
        create: (name) => believing(files.create(name), () => isExtent(name)),
        open: (name) => believing(files.open(name), () => isExtent(name)),
      },
      journal: {
        file: await believing(journal.open().open(JOURNAL), () => this.believesJournals),
        clock: this.clock,
        random: this.seeds.stream(`${machine} journal ${life}`),
        checkpointMs: CHECKPOINT_MS,
      },
    });
  }

  /** Everything that a machine keeps is gone. */
  emptyDisks(machine: Machine): void {
    const { disk, journal } = machine;
    this.emptied.add(machine);
    disk.empty();
    emptyJournal(journal, this.#journalBytes ?? 0);
  }

  /** The node ends at once. */
  stopNode(machine: Machine, isPowerLost: boolean): void {
    machine.life++;
    machine.node?.stop();
    machine.node = undefined;
    for (const disk of [machine.disk, machine.journal]) {
      if (isPowerLost) disk?.powerLoss();
      else disk?.kill();
    }
  }

  nodesFrom(from: string): Nodes {
    return {
      call: (place, method, request, timeoutMs) => {
        if (this.believesFragments && method === 'finishFragment') return Promise.resolve({}) as never;
        const answer = this.#call(from, place.address, timeoutMs, () => {
          const machine = this.machines.find(({ name }) => name === place.address)!;
          const { node, life } = machine;
          if (node === undefined || node.node !== place.node) return undefined;
          return { work: node.handle(method, request), isAlive: () => machine.life === life };
        });
        if (method === 'fence')
          this.#noteLength(answer as Promise<ReplicaLength>, request as { extent: number; epoch: number });
        if (this.believesLastSecondary && method === 'append' && from !== 'client' && Number(from.slice(7)) % 2 === 0) {
          answer.catch(() => {});
          return Promise.resolve({}) as typeof answer;
        }
        return answer;
      },
    };
  }

  #noteLength(answer: Promise<ReplicaLength>, { extent, epoch }: { extent: number; epoch: number }): void {
    answer.then(
      ({ length, restarts }) => {
        const key = `${extent} ${epoch}`;
        if (restarts === 0) this.fencedLengths.set(key, [...(this.fencedLengths.get(key) ?? []), length]);
      },
      () => {},
    );
  }

  managerFrom(from: string): Manager {
    if (this.managers.length === 0) return this.#onlyManager(from);
    return new FollowingManager({
      addresses: this.managers.map(({ name }) => name),
      clock: this.clock,
      retryMs: TIMING.retryMs,
      searchMs: this.#searchMs,
      at: (address) => ({
        call: (method, request, timeoutMs) =>
          this.#call(from, address, timeoutMs, () => {
            const process = this.managers.find(({ name }) => name === address)!;
            const { candidate, life } = process;
            if (candidate === undefined) return undefined;
            const work = candidate.handle(method, request);
            if (method === 'report') void this.#checkReport(process, work as Promise<ManagerMethods['report'][1]>);
            return { work, isAlive: () => process.life === life };
          }),
      }),
    });
  }

  /** Only who leads when a report arrives answers it: others do not know what is under way, and would have it deleted. */
  async #checkReport({ name }: ManagerProcess, work: Promise<ManagerMethods['report'][1]>): Promise<void> {
    const leader = await this.#metadata.get(LEADER_KEY);
    const answer = await work.catch(() => undefined);
    const isOfLeader = leader !== undefined && JSON.parse(leader.value).address === name;
    if (!isOfLeader && answer !== undefined)
      this.store.problems.push(`${name} did not lead, and answered a report: delete ${answer.remove}`);
  }

  #onlyManager(from: string): Manager {
    return {
      call: (method, request, timeoutMs) =>
        this.#call(from, MANAGER, timeoutMs, () => {
          const { manager } = this;
          return manager && { work: manager.handle(method, request), isAlive: () => this.manager === manager };
        }),
    };
  }

  #call<T>(
    from: string,
    to: string,
    timeoutMs: number,
    begin: () => { readonly work: Promise<T>; isAlive(): boolean } | undefined,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const cancel = this.clock.wakeAt(this.clock.nowNs() + timeoutMs * MS, () =>
        reject(new Error('no answer in time')),
      );
      this.network.send(from, to, () => {
        const begun = begin();
        if (begun === undefined) {
          this.network.send(to, from, () => reject(new Error('nobody is there')));
          return;
        }
        const answer = (tell: () => void) => {
          if (!begun.isAlive()) return;
          this.network.send(to, from, () => {
            cancel();
            tell();
          });
        };
        begun.work.then(
          (value) => answer(() => resolve(value)),
          (error: Error) => answer(() => reject(error)),
        );
      });
    });
  }

  reader(): ExtentReader {
    const random = this.seeds.stream(`reader${this.#readers++}`);
    return new ExtentReader({
      nodes: this.nodesFrom('client'),
      manager: this.managerFrom('client'),
      combiner: COMBINER,
      clock: this.clock,
      random,
      timing: TIMING,
      readBytes: READ_BYTES,
    });
  }

  /** What a client makes and opens disks with. */
  diskParts() {
    return {
      clock: this.clock,
      random: this.seeds.stream('disk'),
      timing: TIMING,
      nodes: this.nodesFrom('client'),
      manager: this.managerFrom('client'),
      reader: this.reader(),
    };
  }

  async writer(stream: string, owner: string, takeOver = true) {
    const manager = this.managerFrom('client');
    const parts = {
      nodes: this.nodesFrom('client'),
      manager,
      clock: this.clock,
      timing: TIMING,
    };
    return StreamWriter.open({ stream, owner, takeOver }, parts);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.events.after(ms * MS, resolve));
  }

  /** Machines by node number. */
  machineOf(place: NodePlace | number): Machine | undefined {
    const number = typeof place === 'number' ? place : place.node;
    return this.machines.find((machine) => machine.number === number);
  }
}
