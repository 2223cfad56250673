/**
 * `rocev2/congestion`: the rate controls of this package without I/O: the contract {@link RateControl}, the registry,
 * pacing, and the notification point of DCQCN. Time is passed in. See docs/congestion-control.md and docs/extending.md.
 *
 * @module rocev2/congestion
 */

export type { ParameterRange, ParametersOf, ParameterTable } from '../core/parameters.js';
export { NotificationPoint } from './notification-point.js';
export { type Pacer, RatePacer } from './pacer.js';
export { DCQCN_PRESETS, type DcqcnPreset, type DcqcnPresetName } from './presets.js';
export {
  type Acknowledgement,
  RateControl,
  type RateControlDefinition,
  type RegisteredRateControls,
} from './rate-control.js';
export {
  createRateControl,
  type RateControlName,
  type RateControlOptions,
  type RateControlSettings,
  rateControlNames,
  rateControlSettings,
  registerRateControl,
} from './rate-controls.js';
