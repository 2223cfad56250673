/**
 * The TIMELY fluid model in the time domain (CoNEXT'16, section 4): one queue, and per flow a rate and a normalised RTT
 * gradient that follow the queue of the past, integrated by explicit Euler steps. The rate law is a strategy.
 *
 * Invariants: nothing is allocated per step; 0 <= q; minimum rate <= R <= C; the same inputs give the same trajectory.
 */

import { checkObject } from 'rocev2/internal/core';
import { checkFunction } from '../check-arguments.js';
import { DelayHistory } from './delay-history.js';
import { FeedbackJitter, type JitterParameters } from './feedback-jitter.js';
import { type FlowGroup, flowCount } from './flow-group.js';
import { checkModelOptions, type FluidModel } from './fluid-simulation.js';
import { type TimelyInBits, type TimelyModelParameters, timelyInBits } from './timely-parameters.js';
import type { TimelyRateLaw } from './timely-rate-laws.js';

/** One run of the model: parameters, rate law, flows, delay. */
export interface TimelyModelOptions {
  /** Link and sender parameters. */
  readonly parameters: TimelyModelParameters;
  /** The sender's reaction to a delay sample. */
  readonly law: TimelyRateLaw;
  /** The flows, at least one group. */
  readonly groups: readonly FlowGroup[];
  /** D_prop: the part of the feedback delay that is neither queueing nor transmission. */
  readonly delayNs: number;
  /** Length of an Euler step; 1 us unless given. */
  readonly stepNs?: number | undefined;
  /** Extra age of the feedback; none unless given. */
  readonly jitter?: JitterParameters | undefined;
}

/** Queueing delay up to which the past is kept; a longer one reads the oldest sample held. */
const MAX_QUEUEING_SECONDS = 0.01;

/**
 * TIMELY in the time domain (CoNEXT'16, section 4). Flows start at a fair share unless their group says otherwise.
 * Throws ERR_ROCE_OUT_OF_RANGE or ERR_ROCE_CONFLICT for invalid flow groups and parameters, ERR_ROCE_LIMIT for a delay
 * whose past does not fit the memory allowed.
 */
export class TimelyModel implements FluidModel {
  readonly groups: readonly FlowGroup[];
  readonly stepNs: number;
  readonly linkRateBps: number;
  readonly #parameters: TimelyInBits;
  readonly #law: TimelyRateLaw;
  readonly #delay: number;
  readonly #jitter: FeedbackJitter | undefined;
  readonly #rates: Float64Array;
  readonly #gradients: Float64Array;
  /** Channel 0 is the queue, channel 1 the extra delay that the feedback then met on its way back. */
  readonly #history: DelayHistory;
  readonly #sample = new Float64Array(2);
  #queue = 0;
  #steps = 0;

  constructor(options: TimelyModelOptions) {
    checkModelOptions('TimelyModel', options);
    checkObject('law', options.law, 'a TimelyRateLaw');
    checkFunction('change of the law', options.law.change);
    checkFunction('observe of the law', options.law.observe);
    this.groups = options.groups;
    this.stepNs = options.stepNs ?? 1000;
    this.#parameters = timelyInBits(options.parameters);
    this.linkRateBps = options.parameters.linkRateBps;
    this.#law = options.law;
    this.#delay = options.delayNs * 1e-9;
    this.#jitter = options.jitter === undefined ? undefined : new FeedbackJitter(options.jitter);
    const { capacity, segment, minimumRate } = this.#parameters;
    const flows = flowCount(options.groups);
    this.#rates = Float64Array.from(options.groups, ({ initialRateBps }) =>
      Math.min(initialRateBps ?? capacity / flows, capacity),
    );
    this.#gradients = new Float64Array(options.groups.length);
    const maxAge = this.#delay + (this.#jitter?.maxSeconds ?? 0) + MAX_QUEUEING_SECONDS + segment / minimumRate;
    this.#history = new DelayHistory(this.stepNs * 1e-9, maxAge, this.#sample);
  }

  get timeNs(): number {
    return this.#steps * this.stepNs;
  }

  get queueBytes(): number {
    return this.#queue / 8;
  }

  rateBps(group: number): number {
    return this.timeNs < this.groups[group].startNs ? 0 : this.#rates[group];
  }

  step(): void {
    const { capacity, mtu, segment, gain, minRtt, minimumRate } = this.#parameters;
    const dt = this.stepNs * 1e-9;
    const now = this.timeNs;
    const age = (this.#queue + mtu) / capacity + this.#delay;
    const extraDelay = this.#jitter?.at(now) ?? 0;
    const delayedQueue = this.#apparentQueue(age, extraDelay);

    let growth = -capacity;
    for (let i = 0; i < this.groups.length; i++) {
      if (now < this.groups[i].startNs) continue;
      const rate = this.#rates[i];
      const gradient = this.#gradients[i];
      growth += this.groups[i].count * rate;
      const updateInterval = Math.max(segment / rate, minRtt);
      this.#history.seek(updateInterval);
      const previousQueue = this.#apparentQueue(age + updateInterval, this.#history.value(1));
      const measured = (delayedQueue - previousQueue) / (capacity * minRtt);
      this.#gradients[i] = gradient + ((dt * gain) / updateInterval) * (measured - gradient);
      const change = this.#law.change(i, rate, delayedQueue, gradient);
      this.#law.observe(i, delayedQueue, previousQueue, dt);
      this.#rates[i] = Math.min(Math.max(rate + (dt * change) / updateInterval, minimumRate), capacity);
    }
    this.#queue = Math.max(0, this.#queue + dt * growth);
    this.#sample[0] = this.#queue;
    this.#sample[1] = extraDelay;
    this.#history.push(this.#sample);
    this.#steps++;
  }

  /** The queue a sender infers from an RTT: an extra delay makes the sample older, and looks like more queue. */
  #apparentQueue(age: number, extraDelay: number): number {
    this.#history.seek(age + extraDelay);
    return this.#history.value(0) + extraDelay * this.#parameters.capacity;
  }
}
