/**
 * Ack policies of the sliding-window memory pool: when the side that empties blocks acknowledges them as free.
 *
 * - NoDelay: at once, by id.
 * - Nagle: when MAS blocks are free (SegAvail >= MAS) or the oldest of them has waited for MAT (TimeWait >= MAT), by
 *   count. A count means "the oldest ones", so only blocks without an earlier block in use are counted: the prefix
 *   rule, which makes freeing out of order safe.
 */

import { RoceError } from '../core/errors.js';

/** An acknowledgement: by id, or by the number of oldest blocks. */
export type BlockAcknowledgement =
  | {
      /** Id of the free block. */
      readonly id: number;
    }
  | {
      /** Number of free blocks, counted from the one used longest ago. */
      readonly count: number;
    };

/** An ack policy: decides what to acknowledge, and when. Times are nanoseconds of the caller's clock. */
export interface ReleasePolicy {
  /** Notes that the peer has used this block; calls are in the order of use. */
  onUsed(id: number): void;
  /** Notes that the block is free. */
  onFreed(id: number, nowNs: number): void;
  /** The next acknowledgement to send now; call it until it returns none. */
  due(nowNs: number): BlockAcknowledgement | undefined;
  /** When to call `due` next if nothing else happens; Infinity: never. */
  readonly deadlineNs: number;
}

export const POLICY_NAMES = ['nodelay', 'nagle'] as const;

/** When the Nagle policy acknowledges; both conditions must be reachable, or the pool deadlocks. */
export interface NagleParameters {
  /** MAS: acknowledge when this number of blocks is free. 1..M. */
  readonly maxAvailableSegments: number;
  /** MAT: or when the oldest free block has waited this long, in ns. Finite and above zero. */
  readonly maxAckTimeNs: number;
}

/** Acknowledges each block as soon as it is free, by id. */
export class NoDelayPolicy implements ReleasePolicy {
  readonly deadlineNs = Number.POSITIVE_INFINITY;
  readonly #freed: number[] = [];

  onUsed(): void {}

  onFreed(id: number): void {
    this.#freed.push(id);
  }

  due(): BlockAcknowledgement | undefined {
    const id = this.#freed.shift();
    return id === undefined ? undefined : { id };
  }
}

/**
 * Throws ERR_ROCE_OUT_OF_RANGE for parameters that deadlock: with MAS > M all blocks can be free without an
 * acknowledgement being due, and with an infinite MAT none ever becomes due.
 */
export function checkNagle(parameters: NagleParameters, poolBlocks: number): void {
  const { maxAvailableSegments: mas, maxAckTimeNs: mat } = parameters;
  if (!Number.isInteger(mas) || mas < 1 || mas > poolBlocks) {
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `MAS is ${mas} in a pool of ${poolBlocks} blocks`,
      `it must be 1 to ${poolBlocks}: with more, the writer runs out of blocks before an acknowledgement is due`,
    );
  }
  if (!(mat > 0) || mat === Number.POSITIVE_INFINITY) {
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `MAT is ${mat} ns`,
      'it must be finite and above zero: without it the last blocks of a burst are never released',
    );
  }
}

/** Acknowledges several blocks at once, by count. */
export class NaglePolicy implements ReleasePolicy {
  readonly #parameters: NagleParameters;
  readonly #order: number[] = [];
  readonly #freed = new Set<number>();
  #available = 0;
  #oldestFreeNs = 0;

  /** Throws ERR_ROCE_OUT_OF_RANGE for parameters that deadlock. */
  constructor(parameters: NagleParameters, poolBlocks: number) {
    checkNagle(parameters, poolBlocks);
    this.#parameters = parameters;
  }

  onUsed(id: number): void {
    this.#order.push(id);
  }

  onFreed(id: number, nowNs: number): void {
    this.#freed.add(id);
    const before = this.#available;
    while (this.#available < this.#order.length && this.#freed.delete(this.#order[this.#available])) this.#available++;
    if (before === 0 && this.#available > 0) this.#oldestFreeNs = nowNs;
  }

  due(nowNs: number): BlockAcknowledgement | undefined {
    if (this.#available === 0) return undefined;
    if (this.#available < this.#parameters.maxAvailableSegments && nowNs < this.deadlineNs) return undefined;
    const count = this.#available;
    this.#order.splice(0, count);
    this.#available = 0;
    return { count };
  }

  get deadlineNs(): number {
    return this.#available === 0 ? Number.POSITIVE_INFINITY : this.#oldestFreeNs + this.#parameters.maxAckTimeNs;
  }
}
