/**
 * Reads a coded extent. A byte is in one data fragment; if that is gone, slow or damaged, the same blocks of other
 * fragments are read and combined. Such a read is an incast of up to twelve flows, so the reader pulls: at most
 * {@link PIECES_MAX} pieces of {@link PIECE_BLOCKS} blocks are in flight to it.
 */

import { RpcError } from '@rocev2/rpc';
import { type Clock, NS_PER_MS, Permits } from 'rocev2/internal/core';
import { type CodedPlace, codeOf, type FragmentPlace, type Nodes } from '../messages.js';
import { areBlocksIntact, BLOCK_BYTES } from '../record.js';
import type { Combiner } from './combiner.js';
import { erasureCode } from './erasure-code.js';
import { type FragmentShape, piecesOf, rangesOf } from './layout.js';

const PIECE_BLOCKS = 64;
/** In-flight pieces per reader: as many as a reconstruction needs. */
const PIECES_MAX = 12;

export interface CodedExtent extends FragmentShape {
  readonly extent: number;
  readonly fragments: readonly FragmentPlace[];
}

export interface CodedReaderParts {
  readonly nodes: Nodes;
  readonly clock: Clock;
  readonly combiner: Combiner;
  readonly timing: { readonly callMs: number; readonly hedgeMs: number };
}

export interface CodedReaderCounters {
  reconstructed: number;
  sources: number;
}

export function codedExtent({
  extent,
  sealed,
  coded,
}: {
  readonly extent: number;
  readonly sealed?: number;
  readonly coded?: CodedPlace;
}): CodedExtent | undefined {
  if (coded === undefined || sealed === undefined) return undefined;
  return { extent, length: sealed, code: coded.code, fragments: coded.fragments };
}

export class CodedReader {
  readonly counters: CodedReaderCounters = { reconstructed: 0, sources: 0 };
  readonly #parts: CodedReaderParts;
  readonly #underWay = new Permits(PIECES_MAX);
  /** Nodes that did not answer in time, and until when they are avoided. */
  readonly #avoided = new Map<number, number>();

  constructor(parts: CodedReaderParts) {
    this.#parts = parts;
  }

  async bytes(coded: CodedExtent, from: number, to: number): Promise<Buffer> {
    const { at, ranges } = rangesOf(coded, from, to);
    const parts = ranges.map(({ fragment, first, count }) => this.blocks(coded, fragment, first, count));
    return Buffer.concat(await Promise.all(parts)).subarray(from - at, to - at);
  }

  async blocks(coded: CodedExtent, fragment: number, first: number, count: number): Promise<Buffer> {
    const pieces = [...piecesOf(first, count, PIECE_BLOCKS)];
    return joined(pieces.map((piece) => this.#piece(coded, fragment, piece.first, piece.count)));
  }

  async reconstruct(coded: CodedExtent, fragment: number, first: number, count: number): Promise<Buffer> {
    const pieces = [...piecesOf(first, count, PIECE_BLOCKS)];
    return joined(pieces.map((piece) => this.#made(coded, fragment, piece.first, piece.count)));
  }

  async #piece(coded: CodedExtent, fragment: number, first: number, count: number): Promise<Buffer> {
    const place = coded.fragments.find((one) => one.fragment === fragment);
    if (place === undefined) return this.#made(coded, fragment, first, count);
    if (this.#isAvoided(place.node)) {
      try {
        return await this.#made(coded, fragment, first, count);
      } catch (failure) {
        return this.#ask(coded, place, first, count).catch(() => {
          throw failure;
        });
      }
    }
    await this.#underWay.take(1);
    const direct = this.#ask(coded, place, first, count);
    const bytes = await this.#inTime(direct.catch(() => undefined));
    this.#underWay.give(1);
    if (bytes !== undefined) return bytes;
    try {
      return await Promise.any([this.#made(coded, fragment, first, count), direct]);
    } catch (error) {
      throw (error as AggregateError).errors[0];
    }
  }

  async #made(coded: CodedExtent, fragment: number, first: number, count: number): Promise<Buffer> {
    const { sources } = erasureCode(coded.code).plan([fragment], indexesBut(coded, fragment)) ?? { sources: [] };
    await this.#underWay.take(sources.length);
    try {
      return await this.#sum(coded, fragment, first, count);
    } finally {
      this.#underWay.give(sources.length);
    }
  }

  async #sum(coded: CodedExtent, fragment: number, first: number, count: number): Promise<Buffer> {
    const code = erasureCode(coded.code);
    const others = coded.fragments.filter((one) => one.fragment !== fragment);
    const there = new Map<number, Buffer>();
    const bad = new Set<number>();
    const slow = new Set(others.filter(({ node }) => this.#isAvoided(node)).map((one) => one.fragment));
    const asked = new Map<number, Promise<void>>();
    const ask = (place: FragmentPlace) =>
      this.#ask(coded, place, first, count).then(
        (bytes) => void there.set(place.fragment, bytes),
        () => void bad.add(place.fragment),
      );
    for (;;) {
      const usable = others.map((one) => one.fragment).filter((one) => !bad.has(one));
      const quick = usable.filter((one) => !slow.has(one) || there.has(one));
      const plan = code.plan([fragment], quick) ?? code.plan([fragment], usable);
      if (plan === undefined)
        throw new RpcError(
          'UNREACHABLE',
          `too few fragments of extent ${coded.extent} answer: ${usable.length} of ${code.total}`,
        );
      const missing = plan.sources.filter((one) => !there.has(one));
      if (missing.length === 0) {
        this.counters.reconstructed++;
        this.counters.sources += plan.sources.length;
        const sources = plan.sources.map((one) => there.get(one)!);
        return (await this.#parts.combiner.combine(plan.rows, sources))[0];
      }
      for (const one of missing)
        if (!asked.has(one)) asked.set(one, ask(others.find((place) => place.fragment === one)!));
      const isThere = await this.#inTime(Promise.all(missing.map((one) => asked.get(one))));
      if (isThere === undefined) for (const one of missing) if (!there.has(one)) slow.add(one);
    }
  }

  async #ask({ extent }: CodedExtent, place: FragmentPlace, first: number, count: number): Promise<Buffer> {
    const { nodes, clock, timing } = this.#parts;
    const { fragment, making, node } = place;
    const request = { extent, fragment, making, first, count };
    try {
      const { data, crcs } = await nodes.call(place, 'readFragment', request, timing.callMs);
      if (
        data.length !== count * BLOCK_BYTES ||
        crcs.length !== count ||
        !areBlocksIntact(data, Uint32Array.from(crcs))
      )
        throw new RpcError('DAMAGED', `node ${node} sent damaged blocks`);
      this.#avoided.delete(node);
      return Buffer.from(data.buffer, data.byteOffset, data.length);
    } catch (error) {
      if (codeOf(error) === 'UNREACHABLE') this.#avoided.set(node, clock.nowNs() + timing.callMs * NS_PER_MS);
      if (codeOf(error) === 'DAMAGED')
        nodes.call(place, 'mendFragment', { extent, fragment, making }, timing.callMs).catch(() => {});
      throw error;
    }
  }

  #isAvoided(node: number): boolean {
    return (this.#avoided.get(node) ?? 0) > this.#parts.clock.nowNs();
  }

  #inTime<T>(value: Promise<T>): Promise<T | undefined> {
    const { clock, timing } = this.#parts;
    return new Promise((resolve, reject) => {
      const cancel = clock.wakeAt(clock.nowNs() + timing.hedgeMs * NS_PER_MS, () => resolve(undefined));
      const done = <A>(tell: (outcome: A) => void) => {
        return (outcome: A) => {
          cancel();
          tell(outcome);
        };
      };
      value.then(done(resolve), done(reject));
    });
  }
}

function indexesBut(coded: CodedExtent, fragment: number): number[] {
  return coded.fragments.map((one) => one.fragment).filter((one) => one !== fragment);
}

async function joined(pieces: ReadonlyArray<Promise<Buffer>>): Promise<Buffer> {
  const bytes = await Promise.all(pieces);
  return bytes.length === 1 ? bytes[0] : Buffer.concat(bytes);
}
