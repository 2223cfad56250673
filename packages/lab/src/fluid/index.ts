/**
 * Fluid models of DCQCN and TIMELY: fixed points, stability, and integration in time. Pure mathematics: no packets, no
 * I/O.
 *
 * @module @rocev2/lab/fluid
 */

export type { RandomSource } from 'rocev2/internal/core';
export type { Complex } from './complex.js';
export { type DcqcnConvergence, dcqcnConvergence } from './dcqcn-convergence.js';
export { approximateMarkProbability, type DcqcnFixedPoint, dcqcnFixedPoint } from './dcqcn-fixed-point.js';
export { authorsDcqcnLoop, exactDcqcnLoop } from './dcqcn-linearisation.js';
export { DcqcnModel, type DcqcnModelOptions } from './dcqcn-model.js';
export { DCQCN_LONG_RAMP, DCQCN_SIGCOMM15, type DcqcnInPackets, type DcqcnParameters } from './dcqcn-parameters.js';
export type { JitterParameters } from './feedback-jitter.js';
export { type FlowGroup, flowCount, togetherAtStart } from './flow-group.js';
export {
  type FluidModel,
  type FluidRun,
  type FluidTrace,
  hasSettled,
  type SimulateOptions,
  type Swing,
  simulate,
} from './fluid-simulation.js';
export {
  type PatchedTimelyFixedPoint,
  patchedTimelyConvergenceBoundNs,
  patchedTimelyFixedPoint,
  patchedTimelyLoop,
} from './patched-timely-stability.js';
export { criticalDelayNs, type OpenLoop, type PhaseMargin, phaseMargin } from './phase-margin.js';
export { DCQCN_PI, type PiGains } from './pi-controller.js';
export {
  type DcqcnStudyOptions,
  dcqcnStudy,
  type FluidFixedPoint,
  type FluidStudy,
  type PatchedTimelyStudyOptions,
  patchedTimelyStudy,
  type StudyOptions,
  timelyStudy,
} from './study.js';
export { TimelyModel, type TimelyModelOptions } from './timely-model.js';
export {
  PATCHED_TIMELY_CONEXT16,
  PATCHED_TIMELY_PI_CONEXT16,
  type PatchedTimelyModelParameters,
  TIMELY_SIGCOMM15,
  type TimelyModelParameters,
} from './timely-parameters.js';
export {
  type HostPiGains,
  HostPiLaw,
  OriginalTimelyLaw,
  PatchedTimelyLaw,
  publishedHostPi,
  type TimelyRateLaw,
} from './timely-rate-laws.js';
