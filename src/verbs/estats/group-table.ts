/**
 * Latency by group (connection, operation, status) for one window at a time. The number of groups is bounded: when the table is full, what
 * has no group of its own goes to the one called "other". A group that a whole window did not use is given up when the window closes, so
 * that the places go to those who work.
 */

import { Histogram, type SparseHistogram } from './histogram.js';
import { StageHistograms } from './stage-histograms.js';
import { STAGE_T6_T1, STAGES } from './stages.js';

/** What tells one group of samples from another. */
export interface GroupKey {
  /** The connection's name; `other` for those that found no place. */
  readonly conn: string;
  /** `ibv_wc_opcode` by name. */
  readonly op: string;
  /** `ibv_wc_status` by name. */
  readonly status: string;
}

/** A group's histograms of a closed window, in the order of STAGES. */
export interface GroupWindow extends GroupKey {
  /** One histogram a stage. */
  readonly stages: readonly SparseHistogram[];
}

const OTHER: GroupKey = { conn: 'other', op: 'other', status: 'other' };

/** A sample is slow when it takes this many times the 99th percentile of the window before ... */
const SLOW_FACTOR = 10;
/** ... and at least so long. */
const SLOW_MIN_NS = 100e6;

/** One group's open window. */
export class Group {
  /** Its name. */
  readonly key: GroupKey;
  /** Samples of the open window. */
  readonly stages = new StageHistograms();
  /** From here on a sample is worth a dump. */
  slowNs = SLOW_MIN_NS;
  /** Given up: who remembers it must ask the table again. */
  released = false;

  constructor(
    /** Its name. */
    key: GroupKey,
  ) {
    this.key = key;
  }

  /** Nothing was recorded in the open window. */
  get isEmpty(): boolean {
    return this.stages.count === 0;
  }

  /** The stages as they are now. */
  window(): GroupWindow {
    return { ...this.key, stages: STAGES.map((_, stage) => this.stages.sparse(stage)) };
  }

  /** Clears the histograms; what counts as slow follows from the window that ends. */
  startWindow(): void {
    const whole = new Histogram();
    whole.add(this.stages.sparse(STAGE_T6_T1));
    this.slowNs = Math.max(SLOW_FACTOR * whole.quantileNs(0.99), SLOW_MIN_NS);
    this.stages.reset();
  }
}

/** All groups of a device, at most as many as it was made for, and `other`. */
export class GroupTable {
  readonly #groups = new Map<string, Group>();
  readonly #max: number;
  readonly #other = new Group(OTHER);
  /** Samples that went to "other". */
  overflowed = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Groups now, without `other`. */
  get size(): number {
    return this.#groups.size;
  }

  /** The group of this key, or "other". */
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

  /** The groups that have samples in this window. */
  windows(): GroupWindow[] {
    return [...this.#groups.values(), this.#other].filter((group) => !group.isEmpty).map((group) => group.window());
  }

  /** Empties all groups; those that were empty are given up. */
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
