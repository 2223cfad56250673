/**
 * Reads from any replica, with hedging (Dean and Barroso, "The Tail at Scale", CACM 2013) if one is slow, and the next
 * at once if one refuses. CRCs are checked here again; a replica with a damaged record is asked to repair it.
 */

import { RpcError } from '@rocev2/rpc';
import { type Clock, NS_PER_MS, pause, type RandomSource, randomInt } from 'rocev2/internal/core';
import { type CodedExtent, CodedReader, codedExtent } from './coding/coded-reader.js';
import { codedBlocks, codedRecords } from './coding/coded-records.js';
import type { Combiner } from './coding/combiner.js';
import { codeOf, type ExtentPlace, type Manager, type NodePlace, type Nodes } from './messages.js';
import { ReadAhead } from './read-ahead.js';
import { areBlocksIntact, HEADER_BYTES, intactRecordsIn, recordsIn, type WholeRecord, wholeBytesIn } from './record.js';
import type { Blocks } from './replica.js';

const FETCH_BYTES = 1 << 20;

export interface ReaderParts {
  readonly nodes: Nodes;
  readonly manager: Manager;
  readonly clock: Clock;
  readonly combiner: Combiner;
  readonly random: RandomSource;
  readonly readBytes?: number;
  readonly timing: ReaderTiming;
}

export interface ReaderTiming {
  readonly callMs: number;
  readonly hedgeMs: number;
  /** Between attempts to read the end of an extent that is being sealed. */
  readonly retryMs: number;
}

/** Counters of a reader. */
export interface ReaderCounters {
  /** Requests to a second node because the first was slow. */
  hedges: number;
  /** Damaged records found. */
  damaged: number;
  /** Nodes that did not answer, or refused. */
  failures: number;
  /** Pieces of fragments decoded from others, because their own node did not return them. */
  reconstructed: number;
}

interface Ways<T> {
  readonly fromFragments: (coded: CodedExtent) => Promise<T>;
  readonly ask: (place: NodePlace, sealed?: number) => Promise<T>;
  readonly first?: readonly number[];
}

export class ExtentReader {
  readonly counters: ReaderCounters = { hedges: 0, damaged: 0, failures: 0, reconstructed: 0 };
  readonly #parts: ReaderParts;
  readonly #coded: CodedReader;
  readonly #readBytes: number;
  readonly #locations = new Map<number, ExtentPlace>();
  readonly #learnedNs = new Map<number, number>();

  constructor(parts: ReaderParts) {
    this.#parts = parts;
    this.#coded = new CodedReader(parts);
    this.#readBytes = parts.readBytes ?? FETCH_BYTES;
  }

  learn(place: ExtentPlace): void {
    this.#locations.set(place.extent, place);
    this.#learnedNs.set(place.extent, this.#parts.clock.nowNs());
  }

  forget(extent: number): void {
    this.#locations.delete(extent);
    this.#learnedNs.delete(extent);
  }

  read(extent: number, offset: number, first: number, count: number): Promise<Blocks> {
    const fromFragments = (coded: CodedExtent) => codedBlocks(this.#coded, coded, { offset, first, count });
    const ask = async (place: NodePlace) => {
      const { nodes, timing } = this.#parts;
      const answer = await nodes.call(place, 'read', { extent, offset, first, count }, timing.callMs);
      const blocks = { data: asBuffer(answer.data), crcs: Uint32Array.from(answer.crcs) };
      if (blocks.crcs.length !== count || !areBlocksIntact(blocks.data, blocks.crcs))
        throw new RpcError('DAMAGED', `node ${place.node} sent damaged blocks`);
      return blocks;
    };
    return this.#fromAny(extent, offset, { fromFragments, ask });
  }

  /**
   * Of an open extent those that its owner has reported as committed, which it does with the next append or at its end.
   * While the extent waits to be sealed, its end is requested again for the time of a call.
   */
  async *records(extent: number, from = 0): AsyncGenerator<WholeRecord, void, undefined> {
    const { sealed } = await this.#place(extent);
    if (sealed !== undefined) {
      yield* this.#sealedRecords(extent, from, sealed);
      return;
    }
    const { clock, timing } = this.#parts;
    let untilNs: number | undefined;
    for (let offset = from; ; ) {
      let records: readonly WholeRecord[];
      try {
        records = await this.#recordsAt(extent, offset, this.#readBytes);
      } catch (error) {
        untilNs ??= clock.nowNs() + timing.callMs * NS_PER_MS;
        if (codeOf(error) !== 'UNVERIFIED' || clock.nowNs() >= untilNs) throw error;
        await pause(clock, timing.retryMs * NS_PER_MS);
        const present = await this.#locate(extent);
        if (present.sealed === undefined) continue;
        yield* this.#sealedRecords(extent, offset, present.sealed);
        return;
      }
      if (records.length === 0) return;
      yield* records;
      offset = endOf(records);
      untilNs = undefined;
    }
  }

  /**
   * Pieces are read ahead from different replicas. A damaged record is requested alone, first from the replicas that
   * gave the pieces, so that they detect it.
   */
  async *#sealedRecords(extent: number, from: number, sealed: number): AsyncGenerator<WholeRecord, void, undefined> {
    const ahead = new ReadAhead({ from, end: sealed, pieceBytes: this.#readBytes }, (at, to) =>
      this.#plain(extent, at, to),
    );
    let bytes: Buffer = Buffer.alloc(0);
    let givers: number[] = [];
    const more = async () => {
      const piece = await ahead.take();
      givers = piece.node === undefined ? givers : [...(bytes.length === 0 ? [] : givers), piece.node];
      bytes = bytes.length === 0 ? piece.data : Buffer.concat([bytes, piece.data]);
    };
    for (let offset = from; offset < sealed; ) {
      while (bytes.length < (wholeBytesIn(bytes) ?? HEADER_BYTES) && !ahead.isOver) await more();
      let records = [...intactRecordsIn(bytes, extent, offset)];
      if (records.length === 0) {
        records = (await this.#recordsAt(extent, offset, 1, givers)).slice(0, 1);
        if (records.length === 0) throw new RpcError('MISSING', `extent ${extent} has nothing at ${offset}`);
      }
      const end = endOf(records);
      while (bytes.length < end - offset && !ahead.isOver) await more();
      yield* records;
      bytes = bytes.subarray(end - offset);
      offset = end;
    }
  }

  #recordsAt(
    extent: number,
    offset: number,
    bytesMax: number,
    first: readonly number[] = [],
  ): Promise<readonly WholeRecord[]> {
    const fromFragments = (coded: CodedExtent) => codedRecords(this.#coded, coded, offset, bytesMax);
    const ask = async (place: NodePlace, sealed?: number) => {
      const { nodes, timing } = this.#parts;
      const bytes = asBuffer((await nodes.call(place, 'fetch', { extent, offset, bytesMax }, timing.callMs)).records);
      const found = [...recordsIn(bytes, extent, offset)];
      if (found.length === 0 && sealed !== undefined)
        throw new RpcError('MISSING', `node ${place.node} has nothing at ${offset}`);
      return found;
    };
    return this.#fromAny(extent, offset, { fromFragments, ask, first });
  }

  #plain(extent: number, from: number, to: number): Promise<{ readonly data: Buffer; readonly node?: number }> {
    const fromFragments = async (coded: CodedExtent) => ({ data: await this.#coded.bytes(coded, from, to) });
    const ask = async (place: NodePlace) => {
      const { nodes, timing } = this.#parts;
      const request = { extent, offset: from, bytes: to - from };
      const data = asBuffer((await nodes.call(place, 'fetchPlain', request, timing.callMs)).data);
      if (data.length !== to - from)
        throw new RpcError('MISSING', `node ${place.node} has ${data.length} of ${to - from} bytes at ${from}`);
      return { data, node: place.node };
    };
    return this.#fromAny<{ readonly data: Buffer; readonly node?: number }>(extent, from, { fromFragments, ask });
  }

  /**
   * All records of extents in the order of a stream, each append once: what was appended again because its answer was
   * lost is left out the second time.
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
    return this.#locations.get(extent) ?? (await this.#locate(extent));
  }

  async #locate(extent: number): Promise<ExtentPlace> {
    const place = await this.#parts.manager.call('locateExtent', { extent }, this.#parts.timing.callMs);
    this.learn(place);
    return place;
  }

  #forgetOld(extent: number): void {
    const { clock, timing } = this.#parts;
    const learnedNs = this.#learnedNs.get(extent) ?? 0;
    if (clock.nowNs() - learnedNs > timing.callMs * NS_PER_MS) this.forget(extent);
  }

  async #fromAny<T>(extent: number, offset: number, ways: Ways<T>): Promise<T> {
    const from = async (place: ExtentPlace) => {
      const coded = codedExtent(place);
      if (coded === undefined || place.replicas.length > 0) return this.#askReplicas(place, offset, ways);
      const before = this.#coded.counters.reconstructed;
      const value = await ways.fromFragments(coded);
      const more = this.#coded.counters.reconstructed - before;
      this.counters.reconstructed += more;
      if (more > 0) this.#forgetOld(extent);
      return value;
    };
    const place = await this.#place(extent);
    try {
      return await from(place);
    } catch {
      return from(await this.#locate(extent));
    }
  }

  #askReplicas<T>({ extent, replicas, sealed }: ExtentPlace, offset: number, { ask, first = [] }: Ways<T>): Promise<T> {
    const { clock, random, timing } = this.#parts;
    const start = replicas.length > 1 ? randomInt(random, 0, replicas.length - 1) : 0;
    const any = replicas.map((_, k) => replicas[(start + k) % replicas.length]);
    const isFirst = ({ node }: NodePlace) => first.includes(node);
    const order = [...any.filter(isFirst), ...any.filter((place) => !isFirst(place))];
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
        ask(place, sealed).then(
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
            if (codeOf(failure) !== 'UNVERIFIED') failure = error;
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
    nodes.call(place, 'repair', { extent, offset, from }, timing.callMs).catch(() => {});
  }
}

function endOf(records: readonly WholeRecord[]): number {
  const { head, bytes } = records[records.length - 1];
  return head.offset + bytes.length;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
