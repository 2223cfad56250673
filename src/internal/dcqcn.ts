/**
 * Internals of dcqcn that the packages of this repository use. No part of the public API: it changes without notice.
 */

export { DCQCN_PRESETS, type DcqcnPresetName } from '../dcqcn/presets.js';
export {
  type RateControlName,
  type RateControlOptions,
  rateControlNames,
  rateControlSettings,
  rateControls,
  refuseEchoes,
} from '../dcqcn/rate-controls.js';
export { REACTION_POINT_TABLE, ReactionPoint } from '../dcqcn/reaction-point.js';
