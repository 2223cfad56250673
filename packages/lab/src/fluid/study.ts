import { checkObject, checkOneOf, NS_PER_S } from 'rocev2/internal/core';
import { checkFunction, checkNumber } from '../check-arguments.js';
import { dcqcnConvergence } from './dcqcn-convergence.js';
import { dcqcnFixedPoint } from './dcqcn-fixed-point.js';
import { authorsDcqcnLoop, exactDcqcnLoop } from './dcqcn-linearisation.js';
import { DcqcnModel } from './dcqcn-model.js';
import type { DcqcnParameters } from './dcqcn-parameters.js';
import type { JitterParameters } from './feedback-jitter.js';
import { checkFlowGroups, type FlowGroup, flowCount } from './flow-group.js';
import type { FluidModel } from './fluid-simulation.js';
import {
  patchedTimelyConvergenceBoundNs,
  patchedTimelyFixedPoint,
  patchedTimelyLoop,
} from './patched-timely-stability.js';
import { criticalDelayNs, DELAY_SECONDS_MAX, type OpenLoop, phaseMargin } from './phase-margin.js';
import { checkPiGains, type PiGains } from './pi-controller.js';
import { TimelyModel } from './timely-model.js';
import {
  type PatchedTimelyModelParameters,
  PUBLISHED_MARGIN_WEIGHT_SLOPE,
  type TimelyModelParameters,
} from './timely-parameters.js';
import {
  checkHostPiGains,
  type HostPiGains,
  HostPiLaw,
  OriginalTimelyLaw,
  PatchedTimelyLaw,
} from './timely-rate-laws.js';

/** The fixed point of the model; null for values that the model does not have, or has no single value of. */
export interface FluidFixedPoint {
  /** 0..1; of models that mark. */
  readonly markProbability: number | null;
  /** The bottleneck queue at rest. */
  readonly queueBytes: number | null;
  /** Per flow. */
  readonly rateBps: number | null;
  /** Per flow. */
  readonly targetRateBps: number | null;
  /** DCQCN's estimate of congestion, 0..1. */
  readonly alpha: number | null;
}

/** The theory of one case, and the model to check it with. */
export interface FluidStudy {
  /** Which algorithm. */
  readonly model: 'dcqcn' | 'timely' | 'patched-timely';
  /** The flows of the study. */
  readonly groups: readonly FlowGroup[];
  /** Capacity of the bottleneck. */
  readonly linkRateBps: number;
  /** Where a PI controller sits; null without one. */
  readonly piAt: 'switch' | 'host' | null;
  /** null when the model has no fixed point at all. */
  readonly fixedPoint: FluidFixedPoint | null;
  /** Phase margins from the published linearisation and from the model's own; null if there is none. */
  readonly phaseMarginDegrees: {
    /** From the closed form behind the published figure. */
    readonly authors: number | null;
    /** From the linearisation of the model's own equations at its exact fixed point. */
    readonly exact: number | null;
  };
  /**
   * The delay at which the exact margin reaches zero: 0 if it is negative without delay, null if it stays positive up
   * to 2 ms.
   */
  readonly criticalDelayNs: number | null;
  /** The published bound on the time until unequal flows differ by no more than a tenth of a fair share. */
  readonly convergenceBoundNs: number | null;
  /** Suggested duration of a run, and of the part at its end to observe. */
  readonly durationNs: number;
  /** The last part of the run, over which swings are taken. */
  readonly observeNs: number;
  /** A fresh model with this feedback delay. */
  modelAt(delayNs: number): FluidModel;
}

/** One case to study. */
export interface StudyOptions<Parameters> {
  /** Of the algorithm. */
  readonly parameters: Parameters;
  /** The flows, at least one group. */
  readonly groups: readonly FlowGroup[];
  /** Feedback delay that the margins are computed at. */
  readonly delayNs: number;
  /** Makes the jitter of one run: every run draws the same sequence. */
  readonly jitter?: (() => JitterParameters) | undefined;
}

/** A case of DCQCN. */
export interface DcqcnStudyOptions extends StudyOptions<DcqcnParameters> {
  /** PI marking at the switch instead of RED. */
  readonly pi?: PiGains | undefined;
  /** Where the mark is decided; default `egress`. */
  readonly marking?: 'egress' | 'enqueue' | undefined;
}

/** A case of patched TIMELY. */
export interface PatchedTimelyStudyOptions extends StudyOptions<PatchedTimelyModelParameters> {
  /** PI control at the hosts instead of the patched law (CoNEXT'16, figure 19). */
  readonly pi?:
    | {
        /** See {@link publishedHostPi}. */
        readonly gains: HostPiGains;
        /** `per-flow`: a controller a host. `shared`: one signal for all. */
        readonly scope: 'per-flow' | 'shared';
      }
    | undefined;
}

const MS = 1e6;

/** DCQCN under the given conditions, ready to be analysed and integrated. Throws as {@link DcqcnModel} does. */
export function dcqcnStudy(options: DcqcnStudyOptions): FluidStudy {
  checkStudy('dcqcnStudy', options);
  const { parameters, groups, delayNs, pi, jitter, marking } = options;
  if (pi !== undefined) checkPiGains(pi);
  if (marking !== undefined) checkOneOf('marking', marking, ['egress', 'enqueue']);
  const flows = flowCount(groups);
  const rest = dcqcnFixedPoint(parameters, flows);
  const queueBytes = pi === undefined ? rest.queueBytes : pi.referenceBytes;
  // Past the end of the ramp the margins are those of a longer ramp of the same slope, as in the published figure 3.
  const exactLoop = (delay: number): OpenLoop => exactDcqcnLoop(parameters, flows, delay, pi);
  const authors = pi === undefined ? marginOf(authorsDcqcnLoop(parameters, flows, delayNs * 1e-9)) : null;
  return {
    model: 'dcqcn',
    groups,
    linkRateBps: parameters.linkRateBps,
    piAt: pi === undefined ? null : 'switch',
    fixedPoint: { ...rest, queueBytes },
    phaseMarginDegrees: { authors, exact: marginOf(exactLoop(delayNs * 1e-9)) },
    criticalDelayNs: criticalDelayNs(exactLoop),
    convergenceBoundNs: pi === undefined ? dcqcnConvergence(parameters, flows).boundNs : null,
    durationNs: (pi === undefined ? 150 : 1000) * MS,
    observeNs: (pi === undefined ? 50 : 200) * MS,
    modelAt: (delay) =>
      new DcqcnModel({
        parameters,
        groups,
        delayNs: delay,
        ...(pi && { pi }),
        ...(marking && { marking }),
        ...(jitter && { jitter: jitter() }),
      }),
  };
}

/**
 * TIMELY as published has no fixed point: its rates never settle, so there is nothing to linearise around. Throws as
 * {@link TimelyModel} does.
 */
export function timelyStudy(options: StudyOptions<TimelyModelParameters>): FluidStudy {
  checkStudy('timelyStudy', options);
  const { parameters, groups, jitter } = options;
  const law = new OriginalTimelyLaw(parameters);
  return {
    model: 'timely',
    groups,
    linkRateBps: parameters.linkRateBps,
    piAt: null,
    fixedPoint: null,
    phaseMarginDegrees: { authors: null, exact: null },
    criticalDelayNs: null,
    convergenceBoundNs: null,
    durationNs: 300 * MS,
    observeNs: 100 * MS,
    modelAt: (delay) =>
      new TimelyModel({
        parameters,
        groups,
        law,
        delayNs: delay,
        ...(jitter && { jitter: jitter() }),
      }),
  };
}

/**
 * Patched TIMELY under the given conditions, ready to be analysed and integrated. Throws as {@link TimelyModel} does.
 */
export function patchedTimelyStudy(options: PatchedTimelyStudyOptions): FluidStudy {
  checkStudy('patchedTimelyStudy', options);
  const { parameters, groups, delayNs, pi, jitter } = options;
  if (pi !== undefined) {
    checkObject('pi', pi, 'an object: gains, scope');
    checkHostPiGains(pi.gains);
    checkOneOf('scope', pi.scope, ['per-flow', 'shared']);
  }
  const flows = flowCount(groups);
  const loop =
    (weightSlope: number) =>
    (delay: number): OpenLoop =>
      patchedTimelyLoop({ ...parameters, weightSlope }, flows, delay);
  const delay = delayNs * 1e-9;
  const exact = loop(parameters.weightSlope);
  const rest = patchedTimelyFixedPoint(parameters, flows);
  const nothing = { markProbability: null, targetRateBps: null, alpha: null };
  return {
    model: 'patched-timely',
    groups,
    linkRateBps: parameters.linkRateBps,
    piAt: pi === undefined ? null : pi.scope === 'shared' ? 'switch' : 'host',
    // PI at the hosts pins the queue and leaves the shares open; only a shared signal makes them equal.
    fixedPoint:
      pi === undefined
        ? { ...nothing, ...rest }
        : {
            ...nothing,
            queueBytes: pi.gains.referenceBytes,
            rateBps: pi.scope === 'shared' ? rest.rateBps : null,
          },
    phaseMarginDegrees:
      pi === undefined
        ? { authors: marginOf(loop(PUBLISHED_MARGIN_WEIGHT_SLOPE)(delay)), exact: marginOf(exact(delay)) }
        : { authors: null, exact: null },
    criticalDelayNs: pi === undefined ? criticalDelayNs(exact) : null,
    convergenceBoundNs: pi === undefined && flows > 1 ? patchedTimelyConvergenceBoundNs(parameters, flows) : null,
    durationNs: (pi === undefined ? 300 : 3000) * MS,
    observeNs: (pi === undefined ? 100 : 300) * MS,
    modelAt: (feedbackDelayNs) =>
      new TimelyModel({
        parameters,
        groups,
        law:
          pi === undefined
            ? new PatchedTimelyLaw(parameters)
            : new HostPiLaw(parameters, pi.gains, pi.scope, groups.length),
        delayNs: feedbackDelayNs,
        ...(jitter && { jitter: jitter() }),
      }),
  };
}

function checkStudy(call: string, options: StudyOptions<object>): void {
  checkObject(`the options of ${call}`, options, 'an object: parameters, groups, delayNs');
  checkObject('parameters', options.parameters, 'an object');
  checkFlowGroups(options.groups);
  checkNumber('delayNs', options.delayNs, 0, DELAY_SECONDS_MAX * NS_PER_S);
  if (options.jitter !== undefined) checkFunction('jitter', options.jitter);
}

function marginOf(loop: OpenLoop): number | null {
  return phaseMargin(loop)?.degrees ?? null;
}
