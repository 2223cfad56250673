/**
 * Which priority of a port sends next: strict ones first, the highest before all others; the rest by deficit weighted
 * round robin (Shreedhar and Varghese, SIGCOMM'95), in bytes.
 */

import { RoceError } from 'rocev2/internal/core';
import { PRIORITIES } from 'rocev2/internal/packet';
import type { EgressQueues } from './egress-queues.js';
import { priorityMask } from './priorities.js';
import type { SchedulingConfig } from './switch-config.js';

/** What weight 1 earns a round: a full Ethernet frame, so that most visits send something. */
const QUANTUM_BYTES = 1518;

export class Scheduler {
  readonly #queues: EgressQueues;
  readonly #strict: number;
  readonly #earnedBytes: Float64Array;
  readonly #deficitBytes: Float64Array;
  readonly #turn: Uint8Array;

  constructor(ports: number, queues: EgressQueues, config: SchedulingConfig) {
    this.#queues = queues;
    this.#strict = priorityMask(config.strict ?? [6, 7]);
    this.#earnedBytes = Float64Array.from(checkedWeights(config.weights), (weight) => weight * QUANTUM_BYTES);
    this.#deficitBytes = new Float64Array(ports * PRIORITIES);
    this.#turn = new Uint8Array(ports);
  }

  /** The frame at its head must then be taken. */
  select(port: number, eligible: number): number {
    const strict = eligible & this.#strict;
    if (strict !== 0) return 31 - Math.clz32(strict);
    // A single active queue needs no deficit.
    return (eligible & (eligible - 1)) === 0 ? 31 - Math.clz32(eligible) : this.#weighted(port, eligible);
  }

  #weighted(port: number, eligible: number): number {
    const first = port * PRIORITIES;
    let turn = this.#turn[port];
    for (;;) {
      const queue = first + turn;
      if ((eligible & (1 << turn)) !== 0) {
        const bytes = this.#queues.headBytes(port, turn);
        if (bytes <= this.#deficitBytes[queue]) {
          this.#deficitBytes[queue] -= bytes;
          this.#turn[port] = turn;
          return turn;
        }
      } else this.#deficitBytes[queue] = 0;
      turn = (turn + 1) % PRIORITIES;
      if ((eligible & (1 << turn)) !== 0) this.#deficitBytes[first + turn] += this.#earnedBytes[turn];
    }
  }
}

function checkedWeights(weights: readonly number[] = Array<number>(PRIORITIES).fill(1)): readonly number[] {
  // A weight of 0 would be served never, and waited for indefinitely.
  if (weights.length === PRIORITIES && weights.every((weight) => Number.isInteger(weight) && weight >= 1))
    return weights;
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `[${weights.join(', ')}] are not weights`,
    'give one integer from 1 up for each of the eight priorities',
  );
}
