import { checkKind, checkObject, checkOptions, checkWhole, NS_PER_S, RoceError } from 'rocev2/internal/core';
import { checkFunction, checkNs, checkNumber } from '../check-arguments.js';
import { checkFlowGroups, type FlowGroup } from './flow-group.js';

/** A system of one bottleneck queue and groups of flows that advances by fixed steps. */
export interface FluidModel {
  /** The flows; one series of rates each. */
  readonly groups: readonly FlowGroup[];
  /** Length of one {@link step}. */
  readonly stepNs: number;
  /** Capacity of the bottleneck. */
  readonly linkRateBps: number;
  /** Model time so far: a multiple of `stepNs`. */
  readonly timeNs: number;
  /** The bottleneck queue now. */
  readonly queueBytes: number;
  /** The rate of one flow of the group, bits/s; 0 before its start. */
  rateBps(group: number): number;
  /** Advances the model by `stepNs`. */
  step(): void;
}

/** Range of a quantity over the observed part of a run. */
export interface Swing {
  /** Average over the steps observed. */
  readonly mean: number;
  /** Least value observed. */
  readonly min: number;
  /** Greatest value observed. */
  readonly max: number;
}

/** Evenly spaced samples of a run; all series have the length of `timeNs`. */
export interface FluidTrace {
  /** Model time of each sample, ascending. */
  readonly timeNs: number[];
  /** The queue at each sample. */
  readonly queueBytes: number[];
  /** One series a group: the rate of one of its flows. */
  readonly rateBps: number[][];
}

/** Result of {@link simulate}. */
export interface FluidRun {
  /** The whole run, thinned. */
  readonly trace: FluidTrace;
  /** Over the observed part of the run. */
  readonly queueBytes: Swing;
  /** Over the observed part of the run, one entry a group: the rate of one of its flows. */
  readonly rateBps: readonly Swing[];
  /** Share of the capacity used over the observed part: a link sends at full rate while it has a queue. */
  readonly utilization: number;
}

/** Throws ERR_ROCE_OUT_OF_RANGE or ERR_ROCE_INVALID_ARGUMENT. */
export function checkModelOptions(
  model: string,
  options: { readonly groups: readonly FlowGroup[]; readonly delayNs: number; readonly stepNs?: number | undefined },
): void {
  checkObject(`the options of ${model}`, options, 'an object: parameters, groups, delayNs');
  checkFlowGroups(options.groups);
  checkNumber('delayNs', options.delayNs, 0, NS_PER_S);
  if (options.stepNs !== undefined) checkNumber('stepNs', options.stepNs, 1, NS_PER_S);
}

/** Duration of a run, and the part to observe. */
export interface SimulateOptions {
  /** Model time to run for. */
  readonly durationNs: number;
  /** The last part of the run, over which swings are taken; a third of it unless given. */
  readonly observeNs?: number | undefined;
  /** Points of the trace; 500 unless given. */
  readonly traceSamples?: number | undefined;
}

const TRACE_SAMPLES_MAX = 1e6;

class SwingMeter {
  #sum = 0;
  #count = 0;
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;

  add(value: number): void {
    this.#sum += value;
    this.#count++;
    if (value < this.#min) this.#min = value;
    if (value > this.#max) this.#max = value;
  }

  get swing(): Swing {
    return { mean: this.#sum / this.#count, min: this.#min, max: this.#max };
  }
}

/**
 * Advances `model` by `durationNs` from its current state. Throws ERR_ROCE_OUT_OF_RANGE for a run of less than one
 * step.
 */
export function simulate(model: FluidModel, options: SimulateOptions): FluidRun {
  checkModel(model);
  checkRun(options);
  const steps = Math.round(options.durationNs / model.stepNs);
  const observedSteps = Math.round((options.observeNs ?? options.durationNs / 3) / model.stepNs);
  if (steps < 1 || observedSteps < 1 || observedSteps > steps) {
    throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `cannot observe ${observedSteps} of ${steps} steps`);
  }
  const sampleEvery = Math.max(1, Math.floor(steps / (options.traceSamples ?? 500)));
  const trace: FluidTrace = { timeNs: [], queueBytes: [], rateBps: model.groups.map(() => []) };
  const queue = new SwingMeter();
  const rates = model.groups.map(() => new SwingMeter());
  let sentShare = 0;
  for (let step = 0; step <= steps; step++) {
    if (step > 0) model.step();
    if (step % sampleEvery === 0) {
      trace.timeNs.push(model.timeNs);
      trace.queueBytes.push(model.queueBytes);
      for (let i = 0; i < rates.length; i++) trace.rateBps[i].push(model.rateBps(i));
    }
    if (step <= steps - observedSteps) continue;
    queue.add(model.queueBytes);
    let offered = 0;
    for (let i = 0; i < rates.length; i++) {
      const rate = model.rateBps(i);
      rates[i].add(rate);
      offered += rate * model.groups[i].count;
    }
    sentShare += model.queueBytes > 0 ? 1 : Math.min(1, offered / model.linkRateBps);
  }
  return {
    trace,
    queueBytes: queue.swing,
    rateBps: rates.map((meter) => meter.swing),
    utilization: sentShare / observedSteps,
  };
}

function checkModel(model: FluidModel): void {
  checkObject('model', model, 'a FluidModel');
  checkFunction('step of the model', model.step);
  checkFunction('rateBps of the model', model.rateBps);
}

function checkRun(options: SimulateOptions): void {
  checkOptions('simulate', options, { durationNs: true, observeNs: true, traceSamples: true });
  const { durationNs, observeNs, traceSamples } = options;
  checkNs('durationNs', durationNs);
  if (observeNs !== undefined) checkNs('observeNs', observeNs);
  if (traceSamples !== undefined) checkWhole('traceSamples', traceSamples, 1, TRACE_SAMPLES_MAX);
}

/** A queue that moves by no more than this share of its mean has come to rest, or is on its way there. */
const SETTLED_SWING = 0.05;

/** Whether the queue has settled, as against swinging in a limit cycle. */
export function hasSettled(swing: Swing): boolean {
  checkObject('swing', swing, 'an object: mean, min, max');
  const { mean, min, max } = swing;
  for (const value of [mean, min, max]) checkKind('a value of swing', value, typeof value === 'number', 'a number');
  return max - min <= SETTLED_SWING * mean;
}
