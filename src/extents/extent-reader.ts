/**
 * Reads from any replica: one is asked, another one as well if it takes long (hedging, Dean and Barroso, "The Tail at Scale", CACM 2013), and the next one at once
 * if it refuses. Bytes are held against their CRCs here again. A replica whose record is damaged is told to repair it. Of an extent that is coded the fragments are
 * read.
 */

import type { Clock } from '../core/clock.js';
import { type RandomSource, randomInt } from '../core/random.js';
import { NS_PER_MS } from '../core/units.js';
import { RpcError } from '../rpc/rpc-error.js';
import { type CodedExtent, CodedReader, codedExtent } from './coding/coded-reader.js';
import { codedBlocks, codedRecords } from './coding/coded-records.js';
import type { Combiner } from './coding/combiner.js';
import { codeOf, type ExtentPlace, type Manager, type NodePlace, type Nodes } from './messages.js';
import { areBlocksIntact, recordsIn, type WholeRecord } from './record.js';
import type { Blocks } from './replica.js';

/** Bytes asked for at once when a stream is read from its beginning. */
const FETCH_BYTES = 1 << 20;

/** What a reader is made of. */
export interface ReaderParts {
  /** The way to nodes. */
  readonly nodes: Nodes;
  /** The way to the manager. */
  readonly manager: Manager;
  /** Measures all times. */
  readonly clock: Clock;
  /** Makes sums of fragments. */
  readonly combiner: Combiner;
  /** Says which replica is asked first. */
  readonly random: RandomSource;
  /** Times. */
  readonly timing: ReaderTiming;
}

/** Times of a reader, milliseconds. */
export interface ReaderTiming {
  /** How long it waits for one node or the manager. */
  readonly callMs: number;
  /** When it asks a second node for the same. */
  readonly hedgeMs: number;
}

/** What a reader counts. */
export interface ReaderCounters {
  /** Second nodes asked because the first took long. */
  hedges: number;
  /** Damaged records met. */
  damaged: number;
  /** Nodes that did not answer, or refused. */
  failures: number;
  /** Pieces of fragments made of others, because their own node did not give them. */
  reconstructed: number;
}

/** Reads extents that the manager knows. */
export class ExtentReader {
  /** Since it began. */
  readonly counters: ReaderCounters = { hedges: 0, damaged: 0, failures: 0, reconstructed: 0 };
  readonly #parts: ReaderParts;
  readonly #coded: CodedReader;
  readonly #places = new Map<number, ExtentPlace>();
  readonly #learnedNs = new Map<number, number>();

  constructor(parts: ReaderParts) {
    this.#parts = parts;
    this.#coded = new CodedReader(parts);
  }

  /** What is known of an extent, without asking. */
  learn(place: ExtentPlace): void {
    this.#places.set(place.extent, place);
    this.#learnedNs.set(place.extent, this.#parts.clock.nowNs());
  }

  /** An extent that is deleted is never read again. */
  forget(extent: number): void {
    this.#places.delete(extent);
    this.#learnedNs.delete(extent);
  }

  /**
   * Reads blocks `[first, first + count)` of the record at `offset`. Rejects with DAMAGED or UNREACHABLE, after the manager has been asked once more where the
   * replicas are.
   */
  read(extent: number, offset: number, first: number, count: number): Promise<Blocks> {
    const fromFragments = (coded: CodedExtent) => codedBlocks(this.#coded, coded, { offset, first, count });
    return this.#fromAny(extent, offset, fromFragments, async (place) => {
      const { nodes, timing } = this.#parts;
      const answer = await nodes.call(place, 'read', { extent, offset, first, count }, timing.callMs);
      const blocks = { data: asBuffer(answer.data), crcs: Uint32Array.from(answer.crcs) };
      if (blocks.crcs.length !== count || !areBlocksIntact(blocks.data, blocks.crcs))
        throw new RpcError('DAMAGED', `node ${place.node} sent damaged blocks`);
      return blocks;
    });
  }

  /**
   * All records of an extent in order. Of one that is not sealed those that its owner has told to be on all replicas: it tells so with the next append, or by its
   * end.
   */
  async *records(extent: number, from = 0): AsyncGenerator<WholeRecord, void, undefined> {
    const { sealed } = await this.#place(extent);
    for (let offset = from; sealed === undefined || offset < sealed; ) {
      const fromFragments = (coded: CodedExtent) => codedRecords(this.#coded, coded, offset, FETCH_BYTES);
      const records = await this.#fromAny(extent, offset, fromFragments, async (place) => {
        const { nodes, timing } = this.#parts;
        const request = { extent, offset, bytesMax: FETCH_BYTES };
        const bytes = asBuffer((await nodes.call(place, 'fetch', request, timing.callMs)).records);
        const found = [...recordsIn(bytes, extent, offset)];
        if (found.length === 0 && sealed !== undefined)
          throw new RpcError('MISSING', `node ${place.node} has nothing at ${offset}`);
        return found;
      });
      if (records.length === 0) return;
      for (const record of records) {
        yield record;
        offset = record.head.offset + record.bytes.length;
      }
    }
  }

  /**
   * All records of extents in the order of a stream, each append once: what was appended again because its answer was lost is left out the second time.
   */
  async *scan(extents: readonly ExtentPlace[]): AsyncGenerator<WholeRecord, void, undefined> {
    let last = { writer: -1, sequence: -1 };
    for (const place of extents) {
      this.learn(place);
      for await (const record of this.records(place.extent)) {
        const { writer, sequence } = record.head;
        if (writer === last.writer && sequence <= last.sequence) continue;
        last = { writer, sequence };
        yield record;
      }
    }
  }

  async #place(extent: number): Promise<ExtentPlace> {
    return this.#places.get(extent) ?? (await this.#locate(extent));
  }

  async #locate(extent: number): Promise<ExtentPlace> {
    const place = await this.#parts.manager.call('locateExtent', { extent }, this.#parts.timing.callMs);
    this.learn(place);
    return place;
  }

  /** Has the manager asked again, but not for each piece. */
  #forgetOld(extent: number): void {
    const { clock, timing } = this.#parts;
    const learnedNs = this.#learnedNs.get(extent) ?? 0;
    if (clock.nowNs() - learnedNs > timing.callMs * NS_PER_MS) this.forget(extent);
  }

  async #fromAny<T>(
    extent: number,
    offset: number,
    fromFragments: (coded: CodedExtent) => Promise<T>,
    ask: (place: NodePlace) => Promise<T>,
  ): Promise<T> {
    const from = async (place: ExtentPlace) => {
      const coded = codedExtent(place);
      if (coded === undefined || place.replicas.length > 0) return this.#askReplicas(place, offset, ask);
      const before = this.#coded.counters.reconstructed;
      const value = await fromFragments(coded);
      const more = this.#coded.counters.reconstructed - before;
      this.counters.reconstructed += more;
      if (more > 0) this.#forgetOld(extent); // Fragments may be elsewhere by now.
      return value;
    };
    const place = await this.#place(extent);
    try {
      return await from(place);
    } catch {
      return from(await this.#locate(extent));
    }
  }

  #askReplicas<T>(
    { extent, replicas }: ExtentPlace,
    offset: number,
    ask: (place: NodePlace) => Promise<T>,
  ): Promise<T> {
    const { clock, random, timing } = this.#parts;
    const start = replicas.length > 1 ? randomInt(random, 0, replicas.length - 1) : 0;
    const order = replicas.map((_, k) => replicas[(start + k) % replicas.length]);
    const damaged: NodePlace[] = [];
    return new Promise<T>((resolve, reject) => {
      let waiting = 0;
      let isDone = false;
      let failure: unknown = new RpcError('UNREACHABLE', `extent ${extent} has no replica`);
      let stopHedge = () => {};
      const next = () => {
        stopHedge();
        const place = order.shift();
        if (place === undefined) {
          if (waiting === 0) reject(failure);
          return;
        }
        waiting++;
        stopHedge = clock.wakeAt(clock.nowNs() + timing.hedgeMs * NS_PER_MS, () => {
          if (isDone || order.length === 0) return;
          this.counters.hedges++;
          next();
        });
        ask(place).then(
          (value) => {
            waiting--;
            if (isDone) return;
            isDone = true;
            stopHedge();
            resolve(value);
            for (const node of damaged) this.#repair(node, extent, offset, replicas);
          },
          (error: unknown) => {
            waiting--;
            this.counters.failures++;
            if (codeOf(error) === 'DAMAGED') damaged.push(place);
            failure = error;
            if (!isDone) next();
          },
        );
      };
      next();
    });
  }

  #repair(place: NodePlace, extent: number, offset: number, from: readonly NodePlace[]): void {
    this.counters.damaged++;
    const { nodes, timing } = this.#parts;
    nodes.call(place, 'repair', { extent, offset, from }, timing.callMs).catch(() => {}); // The scrubber of the node will find it, too.
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
