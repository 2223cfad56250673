import { RpcError } from '@rocev2/rpc';
import { type Clock, NS_PER_MS, type RandomSource } from 'rocev2/internal/core';
import { CodedReader } from './coding/coded-reader.js';
import type { Combiner } from './coding/combiner.js';
import { FragmentKeeper } from './coding/fragment-keeper.js';
import type { ExtentStore } from './extent-store.js';
import { codeOf, type Manager, type NodeMethods, type NodePlace, type Nodes } from './messages.js';
import { randomName } from './random-name.js';
import { recordsIn } from './record.js';

/** Requests after which a replica counts as complete. */
const KEEPING: ReadonlySet<keyof NodeMethods> = new Set(['create', 'copy', 'append', 'seal']);
const COPY_BYTES = 1 << 20;
const MARK_WORDS = 2;

export interface NodeParts {
  readonly store: ExtentStore;
  readonly nodes: Nodes;
  readonly manager: Manager;
  readonly combiner: Combiner;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly address: string;
  readonly domain: string;
  /** Where the folder is, `HOST:PATH`. */
  readonly folder: string;
  /** The operator says that the folder may be an older copy. */
  readonly trustsFolder?: boolean;
  readonly timing: NodeTiming;
}

export interface NodeTiming {
  readonly reportMs: number;
  readonly callMs: number;
  /** When it looks for a way around a node that is slow. */
  readonly hedgeMs: number;
  readonly scrubMs: number;
  /** How long deleted files stay in quarantine. */
  readonly keepDeletedMs: number;
  /** Between checkpoints of the folder, each with a new mark. */
  readonly checkpointMs: number;
}

/** Counters of a node. */
export interface NodeCounters {
  /** Records appended here. */
  appends: number;
  /** Bytes of them. */
  appendedBytes: number;
  /** Reads answered. */
  reads: number;
  /** Damaged records found. */
  damaged: number;
  /** Damaged records that were repaired. */
  repaired: number;
  /** Extents that were read to find damage. */
  scrubbed: number;
}

export class ExtentNode {
  readonly counters: NodeCounters = { appends: 0, appendedBytes: 0, reads: 0, damaged: 0, repaired: 0, scrubbed: 0 };
  readonly #parts: NodeParts;
  readonly #fragments: FragmentKeeper;
  readonly #handlers: { readonly [M in keyof NodeMethods]: (request: NodeMethods[M][0]) => Promise<NodeMethods[M][1]> };
  readonly #copies = new Map<number, Promise<void>>();
  /**
   * Extents requested since the last report was made: a deletion in its answer is older than the request and is
   * ignored.
   */
  readonly #wanted = new Set<number>();
  #isStopped = false;
  #stopTimers: Array<() => void> = [];
  #scrubbed = 0;
  /** The mark of the folder that a manager has noted, and when and with how many changes it was written. */
  #confirmedMark: string | undefined;
  #markedNs = 0;
  #markedChanges = 0;

  constructor(parts: NodeParts) {
    this.#parts = parts;
    const { store, nodes, manager, clock, combiner, timing } = parts;
    const reader = new CodedReader({ nodes, clock, combiner, timing });
    this.#fragments = new FragmentKeeper({ store, nodes, manager, combiner, reader, callMs: timing.callMs });
    this.#handlers = {
      ...this.#fragments.handlers,
      deleted: async ({ stream }) => ({ extents: await store.deletedOf(stream) }),
      undelete: async ({ extents }) => {
        await store.undelete(new Set(extents));
        return {};
      },
      inventory: async () => store.inventory(),
      create: async ({ extent, epoch, of }) => {
        await store.create(extent, epoch, of);
        return {};
      },
      append: (request) => this.#append(request),
      fence: ({ extent, epoch }) => store.fence(extent, epoch),
      seal: async ({ extent, epoch, length }) => ({ isSealed: await store.seal(extent, epoch, length) }),
      read: (request) => this.#read(request),
      fetch: async ({ extent, offset, bytesMax, isFenced }) => ({
        records: await store.replica(extent).fetch(offset, Math.min(bytesMax, COPY_BYTES), isFenced),
      }),
      fetchPlain: async ({ extent, offset, bytes }) => ({
        data: await store.replica(extent).readPlain(offset, Math.min(bytes, COPY_BYTES)),
      }),
      copy: async (request) => {
        await this.#copyOnce(request);
        return {};
      },
      complete: async ({ extent, epoch, length, from }) => {
        await store.fence(extent, epoch);
        await this.#fill(extent, length, from, true);
        return {};
      },
      repair: async ({ extent, offset, from }) => ({ isRepaired: await this.#repair(extent, offset, from) }),
      noteVersion: async ({ version }) => {
        await store.noteVersion(version);
        return {};
      },
      remove: async ({ extent }) => {
        await store.remove(extent);
        return {};
      },
    };
  }

  get node(): number {
    return this.#parts.store.identity.node;
  }

  handle<M extends keyof NodeMethods>(method: M, request: NodeMethods[M][0]): Promise<NodeMethods[M][1]> {
    if (KEEPING.has(method)) this.#wanted.add((request as { readonly extent: number }).extent);
    return this.#handlers[method](request);
  }

  async start(): Promise<void> {
    const { timing } = this.#parts;
    for (;;) {
      try {
        await this.#join();
        break;
      } catch (error) {
        const isRefused = codeOf(error) === 'CONFLICT';
        if (isRefused) await this.#parts.store.uncountStart().catch(() => {});
        if (isRefused || this.#isStopped) throw error;
        await this.#sleep(timing.reportMs);
      }
    }
    await this.#report().catch(() => {});
    this.#repeat(timing.reportMs, () => this.#report());
    this.#repeat(timing.scrubMs, () => this.#scrub());
  }

  async #join(): Promise<void> {
    const { store, manager, address, domain, folder, timing, trustsFolder = false } = this.#parts;
    const { cluster } = store.identity;
    const place = { address, domain, folder };
    const own = { ...this.#own(), cluster, ...place, ...(trustsFolder && { trustFolder: true }) };
    const { version, mark } = await manager.call('join', own, timing.callMs);
    await store.noteVersion(version);
    await this.#mark(mark);
  }

  async #joinAgain(): Promise<void> {
    try {
      await this.#join();
    } catch (error) {
      if (codeOf(error) === 'CONFLICT') this.#parts.store.refuse((error as Error).message);
      throw error;
    }
  }

  /** What the folder says of itself. */
  #own() {
    const { node, lives, seen, mark, before } = this.#parts.store.identity;
    const marks = { ...(mark !== undefined && { mark }), ...(before !== undefined && { before }) };
    return { node, lives, ...(seen !== undefined && { seen }), ...marks };
  }

  /** Writes a new mark after `before`, which the manager has noted. The next report has both. */
  async #mark(before: string | undefined): Promise<void> {
    const { store, clock, random } = this.#parts;
    this.#confirmedMark = undefined;
    this.#markedNs = clock.nowNs();
    this.#markedChanges = store.changes;
    await store.setMark(randomName(random, MARK_WORDS), before);
  }

  /** A copy of the folder that is older than the last checkpoint is refused when it joins. */
  async #checkpoint(): Promise<void> {
    const { store, clock, timing } = this.#parts;
    const isDue = clock.nowNs() >= this.#markedNs + timing.checkpointMs * NS_PER_MS;
    if (isDue && this.#confirmedMark !== undefined && store.changes !== this.#markedChanges)
      await this.#mark(this.#confirmedMark);
  }

  stop(): void {
    this.#isStopped = true;
    for (const stop of this.#stopTimers) stop();
  }

  async #append({
    extent,
    epoch,
    offset,
    record,
    secondaries,
  }: NodeMethods['append'][0]): Promise<NodeMethods['append'][1]> {
    const { store, nodes, timing } = this.#parts;
    const bytes = Buffer.from(record.buffer, record.byteOffset, record.length);
    const local = store.append(extent, epoch, { offset, record: bytes });
    const others = secondaries.map(async (place) => {
      const failure = { failed: place.node };
      try {
        await nodes.call(place, 'append', { extent, epoch, offset, record, secondaries: [] }, timing.callMs);
        return undefined;
      } catch (error) {
        return { ...failure, code: codeOf(error) };
      }
    });
    const [, ...answers] = await Promise.all([local, ...others]);
    const failure = answers.find((answer) => answer !== undefined);
    if (failure !== undefined) return failure;
    store.replica(extent).checkEpoch(epoch); // Fenced during the write: the sealing manager may have decided already.
    this.counters.appends++;
    this.counters.appendedBytes += record.length;
    return {};
  }

  async #read({ extent, offset, first, count }: NodeMethods['read'][0]): Promise<NodeMethods['read'][1]> {
    try {
      const { data, crcs } = await this.#parts.store.replica(extent).readBlocks(offset, first, count);
      this.counters.reads++;
      return { data, crcs: [...crcs] };
    } catch (error) {
      if (codeOf(error) === 'DAMAGED') this.counters.damaged++;
      throw error;
    }
  }

  #copyOnce(request: NodeMethods['copy'][0]): Promise<void> {
    let copy = this.#copies.get(request.extent);
    if (copy === undefined) {
      copy = this.#copy(request)
        .catch(async (error: Error) => {
          // The manager does not know of a partial copy, so it would never delete it.
          const { store } = this.#parts;
          if (store.held(request.extent)?.state.isCopying === true) await store.remove(request.extent);
          throw error;
        })
        .finally(() => this.#copies.delete(request.extent));
      this.#copies.set(request.extent, copy);
    }
    return copy;
  }

  async #copy({ extent, epoch, length, from, of }: NodeMethods['copy'][0]): Promise<void> {
    const { store } = this.#parts;
    const there = store.held(extent)?.state;
    if (there?.sealed !== undefined && there.sealed === length) return;
    if (there === undefined || there.isCopying === true || there.sealed !== undefined)
      await store.beginCopy(extent, epoch, of);
    else await store.fence(extent, epoch);
    await this.#fill(extent, length, from);
    if (!(await store.seal(extent, epoch, length)))
      throw new RpcError('MISSING', `the copy of extent ${extent} is short`);
  }

  async #fill(extent: number, length: number, from: readonly NodePlace[], isFenced = false): Promise<void> {
    const { store } = this.#parts;
    for (;;) {
      const offset = store.held(extent)?.length;
      if (offset === undefined) throw new RpcError('MISSING', `the copy of extent ${extent} has been deleted`);
      if (offset >= length) return;
      const bytesMax = Math.min(COPY_BYTES, length - offset);
      await store.restore(extent, offset, await this.#fetch({ extent, offset, bytesMax, isFenced }, from));
    }
  }

  async #fetch(request: NodeMethods['fetch'][0], from: readonly NodePlace[]): Promise<Buffer> {
    let failure: unknown = new RpcError('MISSING', `no node has extent ${request.extent}`);
    for (const place of from) {
      if (place.node === this.node) continue;
      try {
        const { records } = await this.#parts.nodes.call(place, 'fetch', request, this.#parts.timing.callMs);
        const bytes = Buffer.from(records.buffer, records.byteOffset, records.length);
        for (const _intact of recordsIn(bytes, request.extent, request.offset));
        if (bytes.length > 0) return bytes;
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  async #repair(extent: number, offset: number, from: readonly NodePlace[]): Promise<boolean> {
    const { store } = this.#parts;
    if (offset >= store.replica(extent).readable) return false;
    const records = await this.#fetch({ extent, offset, bytesMax: 1 }, from);
    const [record] = recordsIn(records, extent, offset);
    await store.restore(extent, offset, record.bytes);
    await store.replica(extent).fetch(offset, 1);
    this.counters.repaired++;
    return true;
  }

  async #report(): Promise<void> {
    const { store, manager, timing } = this.#parts;
    await store.releaseDeleted(this.#parts.clock.nowNs(), timing.keepDeletedMs * NS_PER_MS);
    const freeBytes = await store.freeBytes();
    const { readOnly, journal } = store;
    const { damaged, repaired } = this.counters;
    const space = { freeBytes, usedBytes: store.usedBytes() };
    const health = { damaged, repaired, ...(readOnly !== undefined && { readOnly }), ...(journal && { journal }) };
    const fragments = store.fragments.complete().map(({ extent, fragment, making }) => ({ extent, fragment, making }));
    await this.#checkpoint().catch(() => {}); // A folder that takes no writes is reported as read-only.
    this.#wanted.clear();
    const own = this.#own();
    const report = { ...own, ...space, ...health, replicas: store.reports(), fragments };
    const answer = manager.call('report', report, timing.callMs);
    const { version, remove, spare, removeFragments } = await answer.catch(async (error) => {
      // It was away so long that the manager has dropped it.
      if (codeOf(error) === 'CONFLICT' && !this.#isStopped) await this.#joinAgain();
      throw error;
    });
    // Durable before anything is deleted: no older copy of the metadata decides about this node afterwards.
    await store.noteVersion(version);
    this.#confirmedMark = own.mark;
    const isUnused = (extent: number) => !this.#copies.has(extent) && !this.#wanted.has(extent);
    for (const extent of remove) if (isUnused(extent)) await store.remove(extent);
    for (const extent of spare) if (isUnused(extent)) await store.removeSpare(extent);
    for (const id of removeFragments) await store.fragments.remove(id);
    await store.fragments.removeIdle();
  }

  async #scrub(): Promise<void> {
    const { store, manager, timing } = this.#parts;
    const sealed = store.reports().filter((report) => report.sealed !== undefined);
    const fragments = store.fragments.complete();
    if (sealed.length + fragments.length === 0) return;
    const turn = this.#scrubbed++ % (sealed.length + fragments.length);
    this.counters.scrubbed++;
    if (turn >= sealed.length) {
      const { damaged, mended } = await this.#fragments.mend(fragments[turn - sealed.length]);
      this.counters.damaged += damaged;
      this.counters.repaired += mended;
      return;
    }
    const { extent } = sealed[turn];
    let from: readonly NodePlace[] | undefined;
    for await (const offset of store.replica(extent).damagedOffsets()) {
      this.counters.damaged++;
      from ??= (await manager.call('locateExtent', { extent }, timing.callMs)).replicas;
      await this.#repair(extent, offset, from).catch(() => {});
    }
  }

  #repeat(everyMs: number, work: () => Promise<void>): void {
    const next = async () => {
      while (!this.#isStopped) {
        await this.#sleep(everyMs);
        if (!this.#isStopped) await work().catch(() => {});
      }
    };
    void next();
  }

  #sleep(ms: number): Promise<void> {
    const { clock } = this.#parts;
    return new Promise((resolve) => {
      this.#stopTimers.push(clock.wakeAt(clock.nowNs() + ms * NS_PER_MS, resolve));
      if (this.#stopTimers.length > 8) this.#stopTimers.splice(0, this.#stopTimers.length - 8);
    });
  }
}
