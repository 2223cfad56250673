/**
 * The number of groups is bounded: when the table is full, further connections share the group "other". A group that
 * was idle for a whole window is removed when the window closes, so that active ones get its slot.
 */

import { Histogram, type SparseHistogram } from './histogram.js';
import { StageHistograms } from './stage-histograms.js';
import { STAGE_T6_T1, STAGES } from './stages.js';

export interface GroupKey {
  readonly conn: string;
  readonly op: string;
  readonly status: string;
}

export interface GroupWindow extends GroupKey {
  readonly stages: readonly SparseHistogram[];
}

const OTHER: GroupKey = { conn: 'other', op: 'other', status: 'other' };

/** A sample is slow when it takes this many times the 99th percentile of the window before ... */
const SLOW_FACTOR = 10;
/** ... and at least this long. */
const SLOW_MIN_NS = 100e6;

export class Group {
  readonly key: GroupKey;
  readonly stages = new StageHistograms();
  slowNs = SLOW_MIN_NS;
  released = false;

  constructor(key: GroupKey) {
    this.key = key;
  }

  get isEmpty(): boolean {
    return this.stages.count === 0;
  }

  window(): GroupWindow {
    return { ...this.key, stages: STAGES.map((_, stage) => this.stages.sparse(stage)) };
  }

  startWindow(): void {
    const whole = new Histogram();
    whole.add(this.stages.sparse(STAGE_T6_T1));
    this.slowNs = Math.max(SLOW_FACTOR * whole.quantileNs(0.99), SLOW_MIN_NS);
    this.stages.reset();
  }
}

export class GroupTable {
  readonly #groups = new Map<string, Group>();
  readonly #max: number;
  readonly #other = new Group(OTHER);
  overflowed = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#groups.size;
  }

  find(key: GroupKey): Group {
    const text = `${key.conn}\n${key.op}\n${key.status}`;
    const known = this.#groups.get(text);
    if (known !== undefined) return known;
    if (this.#groups.size >= this.#max) {
      this.overflowed++;
      return this.#other;
    }
    const group = new Group(key);
    this.#groups.set(text, group);
    return group;
  }

  windows(): GroupWindow[] {
    return [...this.#groups.values(), this.#other].filter((group) => !group.isEmpty).map((group) => group.window());
  }

  startWindow(): void {
    for (const [text, group] of this.#groups) {
      if (group.isEmpty) {
        group.released = true;
        this.#groups.delete(text);
      } else group.startWindow();
    }
    this.#other.startWindow();
  }
}
