/**
 * The DCQCN fluid model in the time domain: a delay-differential system of one queue and N flows (CoNEXT'16, equations
 * 1 to 5), integrated by explicit Euler steps.
 *
 * Invariants: nothing is allocated per step; 0 <= q; 0 <= Rc, Rt <= C; the same inputs give the same trajectory.
 */

import { checkOneOf } from 'rocev2/internal/core';
import { DcqcnEvents } from './dcqcn-events.js';
import { type DcqcnInPackets, type DcqcnParameters, dcqcnInPackets, redMarkProbability } from './dcqcn-parameters.js';
import { dcqcnDerivatives } from './dcqcn-rate-equations.js';
import { DelayHistory } from './delay-history.js';
import { FeedbackJitter, type JitterParameters } from './feedback-jitter.js';
import type { FlowGroup } from './flow-group.js';
import { checkModelOptions, type FluidModel } from './fluid-simulation.js';
import { checkPiGains, type PiGains } from './pi-controller.js';

/** One run of the model: parameters, flows, delay, and how marks are decided. */
export interface DcqcnModelOptions {
  /** Link, sender and RED parameters. */
  readonly parameters: DcqcnParameters;
  /** The flows, at least one group. */
  readonly groups: readonly FlowGroup[];
  /** tau*: from the marking to the sender's reaction. */
  readonly delayNs: number;
  /** Length of an Euler step; 1 us unless given. */
  readonly stepNs?: number | undefined;
  /** Mark by a PI controller instead of RED. */
  readonly pi?: PiGains | undefined;
  /**
   * Where the mark is decided. `egress` (default): when the packet leaves. `enqueue`: on arrival, so that the mark
   * first waits through the queue it reports.
   */
  readonly marking?: 'egress' | 'enqueue' | undefined;
  /** Extra age of the feedback; none unless given. */
  readonly jitter?: JitterParameters | undefined;
}

/** With enqueue marking the feedback ages by the queueing delay; older than this it reads the oldest sample held. */
const MAX_QUEUEING_SECONDS = 0.01;

/**
 * DCQCN in the time domain (CoNEXT'16, equations 1 to 5). Flows start at line rate with alpha 1 unless their group says
 * otherwise. Throws ERR_ROCE_OUT_OF_RANGE or ERR_ROCE_CONFLICT for invalid flow groups and parameters, ERR_ROCE_LIMIT
 * for a delay whose past does not fit the memory allowed.
 */
export class DcqcnModel implements FluidModel {
  readonly groups: readonly FlowGroup[];
  readonly stepNs: number;
  readonly linkRateBps: number;
  readonly #parameters: DcqcnInPackets;
  readonly #packetBytes: number;
  readonly #pi: PiGains | undefined;
  readonly #piReference: number;
  readonly #delay: number;
  readonly #enqueueMarking: boolean;
  readonly #jitter: FeedbackJitter | undefined;
  readonly #events: DcqcnEvents;
  readonly #derivatives = new Float64Array(3);
  readonly #currentRates: Float64Array;
  readonly #targetRates: Float64Array;
  readonly #alphas: Float64Array;
  /** Channel 0 is the marking probability, channel 1 + i the current rate of group i, the last one the queue. */
  readonly #history: DelayHistory;
  readonly #queueChannel: number;
  readonly #sample: Float64Array;
  #queue = 0;
  /** When the packets were enqueued whose marks reached the senders last, in seconds. */
  #markedAt = 0;
  #markProbability = 0;
  #steps = 0;

  constructor(options: DcqcnModelOptions) {
    checkModelOptions('DcqcnModel', options);
    if (options.pi !== undefined) checkPiGains(options.pi);
    if (options.marking !== undefined) checkOneOf('marking', options.marking, ['egress', 'enqueue']);
    this.groups = options.groups;
    this.stepNs = options.stepNs ?? 1000;
    this.#parameters = dcqcnInPackets(options.parameters);
    this.linkRateBps = options.parameters.linkRateBps;
    this.#packetBytes = options.parameters.packetBytes;
    this.#pi = options.pi;
    this.#piReference = (options.pi?.referenceBytes ?? 0) / this.#packetBytes;
    this.#delay = options.delayNs * 1e-9;
    this.#enqueueMarking = options.marking === 'enqueue';
    this.#jitter = options.jitter === undefined ? undefined : new FeedbackJitter(options.jitter);
    this.#events = new DcqcnEvents(this.#parameters);
    // A sender starts unlimited: at line rate, with alpha 1.
    const initialRates = options.groups.map(({ initialRateBps }) =>
      Math.min((initialRateBps ?? this.linkRateBps) / (8 * this.#packetBytes), this.#parameters.capacity),
    );
    this.#currentRates = Float64Array.from(initialRates);
    this.#targetRates = Float64Array.from(initialRates);
    this.#alphas = new Float64Array(initialRates.length).fill(1);
    this.#queueChannel = 1 + initialRates.length;
    this.#sample = Float64Array.from([0, ...initialRates, 0]);
    const maxAge = this.#delay + (this.#jitter?.maxSeconds ?? 0) + (this.#enqueueMarking ? MAX_QUEUEING_SECONDS : 0);
    this.#history = new DelayHistory(this.stepNs * 1e-9, maxAge, this.#sample);
  }

  get timeNs(): number {
    return this.#steps * this.stepNs;
  }

  get queueBytes(): number {
    return this.#queue * this.#packetBytes;
  }

  rateBps(group: number): number {
    return this.timeNs < this.groups[group].startNs ? 0 : this.#currentRates[group] * 8 * this.#packetBytes;
  }

  step(): void {
    const { capacity } = this.#parameters;
    const dt = this.stepNs * 1e-9;
    const now = this.timeNs;
    const feedbackDelay = this.#delay + (this.#jitter?.at(now) ?? 0);
    this.#history.seek(this.#enqueueMarking ? this.#ageOfEnqueueMark(feedbackDelay) : feedbackDelay);
    const delayedMark = this.#history.value(0);

    let growth = -capacity;
    const derivatives = this.#derivatives;
    for (let i = 0; i < this.groups.length; i++) {
      if (now < this.groups[i].startNs) continue;
      growth += this.groups[i].count * this.#currentRates[i];
      this.#events.update(delayedMark, this.#history.value(1 + i));
      dcqcnDerivatives(
        this.#parameters,
        this.#events,
        this.#currentRates[i],
        this.#targetRates[i],
        this.#alphas[i],
        derivatives,
      );
      this.#currentRates[i] = clamp(this.#currentRates[i] + dt * derivatives[0], 0, capacity);
      this.#targetRates[i] = clamp(this.#targetRates[i] + dt * derivatives[1], 0, capacity);
      this.#alphas[i] += dt * derivatives[2];
      this.#sample[1 + i] = this.#currentRates[i];
    }
    const error = this.#queue - this.#piReference;
    this.#queue = Math.max(0, this.#queue + dt * growth);
    this.#markProbability =
      this.#pi === undefined
        ? redMarkProbability(this.#parameters, this.#queue)
        : this.#piMarkProbability(this.#pi, error, growth, dt);
    this.#sample[0] = this.#markProbability;
    this.#sample[this.#queueChannel] = this.#queue;
    this.#history.push(this.#sample);
    this.#steps++;
  }

  /**
   * How long ago the packets whose marks arrive now were enqueued: they left `feedbackDelay` ago, after they had waited
   * through the queue they met. Departures keep the order of arrivals, so the search only ever moves forward.
   */
  #ageOfEnqueueMark(feedbackDelay: number): number {
    const now = this.timeNs * 1e-9;
    const dt = this.stepNs * 1e-9;
    const departure = now - feedbackDelay;
    this.#markedAt = Math.max(this.#markedAt, now - this.#history.maxAgeSeconds);
    for (let next = this.#markedAt + dt; next <= now; next += dt) {
      this.#history.seek(now - next);
      if (next + this.#history.value(this.#queueChannel) / this.#parameters.capacity > departure) break;
      this.#markedAt = next;
    }
    return now - this.#markedAt;
  }

  /**
   * `growth` is what the queue would gain per second if it could go below zero: an empty queue that hid the unused
   * capacity would leave the probability wound up long after the senders had backed off.
   */
  #piMarkProbability(pi: PiGains, error: number, growth: number, dt: number): number {
    const perPacket = this.#packetBytes;
    const slope = perPacket * (pi.proportionalPerByte * growth + pi.integralPerByteSecond * error);
    return clamp(this.#markProbability + dt * slope, 0, 1);
  }
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
