/**
 * The log of records, in segments. A segment with few live records is emptied by moving them and then retired; retired
 * memory keeps its content for the grace period, because lookups that began before may still read it.
 */

import { UNIT_BYTES } from './geometry.js';
import { lengthOfRecord } from './record.js';
import { unitsOf } from './slot.js';

/** Segments that only {@link SegmentLog.append} with `isMove` may begin: room for the live records of one segment. */
const RESERVE = 1;

interface Segment {
  /** Units written since it was last taken. */
  used: number;
  live: number;
  /** `retired` memory may not be written before `reusableNs`. */
  state: 'free' | 'open' | 'sealed' | 'retired';
  reusableNs: number;
}

/** Places are in units of 64 bytes from its first byte. */
export class SegmentLog {
  readonly #bytes: Buffer;
  readonly #unitsEach: number;
  readonly #graceNs: number;
  readonly #segments: Segment[];
  #open: number | undefined;
  #liveUnits = 0;

  constructor(bytes: Buffer, segmentBytes: number, graceNs: number) {
    this.#bytes = bytes;
    this.#unitsEach = segmentBytes / UNIT_BYTES;
    this.#graceNs = graceNs;
    this.#segments = Array.from({ length: bytes.length / segmentBytes }, () => ({
      used: 0,
      live: 0,
      state: 'free',
      reusableNs: 0,
    }));
  }

  get liveUnits(): number {
    return this.#liveUnits;
  }

  get units(): number {
    return this.#segments.length * this.#unitsEach;
  }

  get segments(): number {
    return this.#segments.length;
  }

  get spare(): number {
    return this.#segments.filter(({ state }) => state === 'free' || state === 'retired').length;
  }

  get nextReusableNs(): number | undefined {
    const times = this.#segments.filter(({ state }) => state === 'retired').map(({ reusableNs }) => reusableNs);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** `isMove` may use the last free segment. */
  append(record: Buffer, nowNs: number, isMove = false): number | undefined {
    const units = unitsOf(record.length);
    const index = this.#segmentWithRoom(units, nowNs, isMove);
    if (index === undefined) return undefined;
    const segment = this.#segments[index];
    const place = index * this.#unitsEach + segment.used;
    this.#bytes.set(record, place * UNIT_BYTES);
    segment.used += units;
    segment.live += units;
    this.#liveUnits += units;
    return place;
  }

  #segmentWithRoom(units: number, nowNs: number, isMove: boolean): number | undefined {
    if (this.#open !== undefined && this.#segments[this.#open].used + units <= this.#unitsEach) return this.#open;
    for (const segment of this.#segments)
      if (segment.state === 'retired' && segment.reusableNs <= nowNs) segment.state = 'free';
    const free = this.#segments.filter(({ state }) => state === 'free');
    if (free.length <= (isMove ? 0 : RESERVE)) return undefined;
    if (this.#open !== undefined) this.#seal(this.#segments[this.#open], nowNs);
    Object.assign(free[0], { used: 0, live: 0, state: 'open' });
    this.#open = this.#segments.indexOf(free[0]);
    return this.#open;
  }

  #seal(segment: Segment, nowNs: number): void {
    segment.state = 'sealed';
    if (segment.live === 0) this.#retire(segment, nowNs);
  }

  #retire(segment: Segment, nowNs: number): void {
    segment.state = 'retired';
    segment.reusableNs = nowNs + this.#graceNs;
  }

  release(place: number, units: number, nowNs: number): void {
    const segment = this.#segments[Math.floor(place / this.#unitsEach)];
    segment.live -= units;
    this.#liveUnits -= units;
    if (segment.live === 0 && segment.state === 'sealed') this.#retire(segment, nowNs);
  }

  sealOpen(nowNs: number): void {
    if (this.#open !== undefined) this.#seal(this.#segments[this.#open], nowNs);
    this.#open = undefined;
  }

  /**
   * The sealed segment with the fewest live units; undefined if these would leave no space for `units` more in a
   * separate segment.
   */
  sparsest(units: number): number | undefined {
    let best: number | undefined;
    for (const [index, { state, live }] of this.#segments.entries()) {
      if (state === 'sealed' && (best === undefined || live < this.#segments[best].live)) best = index;
    }
    return best === undefined || this.#segments[best].live + units > this.#unitsEach ? undefined : best;
  }

  *records(index: number): Generator<{ readonly place: number; readonly bytes: Buffer }, void, undefined> {
    const { used } = this.#segments[index];
    for (let at = 0; at < used; ) {
      const place = index * this.#unitsEach + at;
      const start = place * UNIT_BYTES;
      const length = lengthOfRecord(this.#bytes.subarray(start));
      yield { place, bytes: this.#bytes.subarray(start, start + length) };
      at += unitsOf(length);
    }
  }
}
