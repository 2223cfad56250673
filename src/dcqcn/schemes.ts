/** The rate controls by name and number, with their parameters. The number crosses the command ring. */

import { RoceError } from '../core/errors.js';
import { ConstantRate, FIXED_TABLE } from './constant-rate.js';
import {
  completeParameters,
  LIMITS,
  type ParametersOf,
  type ParameterTable,
  packParameters,
  unpackParameters,
} from './parameters.js';
import { PATCHED_TIMELY_TABLE, PatchedTimely } from './patched-timely.js';
import { RATE_CONTROL_NAMES, type RateControl, type RateControlName } from './rate-control.js';
import { REACTION_POINT_TABLE, ReactionPoint } from './reaction-point.js';
import { TIMELY_TABLE, Timely } from './timely.js';

/** As receiver: what every queue pair has, whether it limits its own sending or not. */
const RECEIVER_TABLE = {
  /** N: at most one congestion notification in this time (min_time_between_cnps). 0: one for each marked packet. */
  cnpIntervalNs: { default: 50_000, ...LIMITS.timeOrZeroNs },
} as const satisfies ParameterTable;

/** How packets are spread in time, for schemes with a rate. */
const PACED_TABLE = {
  /** Bytes sent back to back before the pause that brings the flow to its rate. 0: packet by packet. */
  burstBytes: { default: 0, ...LIMITS.bytesOrZero },
  ...RECEIVER_TABLE,
} as const satisfies ParameterTable;

/** The parameters of each scheme: name, default, range. */
export const RATE_CONTROL_TABLES = {
  none: RECEIVER_TABLE,
  fixed: { ...FIXED_TABLE, ...PACED_TABLE },
  dcqcn: { ...REACTION_POINT_TABLE, ...PACED_TABLE },
  timely: { ...TIMELY_TABLE, ...PACED_TABLE },
  'patched-timely': { ...PATCHED_TIMELY_TABLE, ...PACED_TABLE },
} as const satisfies Record<RateControlName, ParameterTable>;

type Tables = typeof RATE_CONTROL_TABLES;

/** A scheme and those of its parameters that differ from the defaults: `{name: 'dcqcn', linkRateBps: 10e9}`. */
export type RateControlOptions = {
  [N in RateControlName]: { readonly name: N } & Partial<ParametersOf<Tables[N]>>;
}[RateControlName];

/** A scheme with all its parameters. */
export type RateControlSettings = {
  [N in RateControlName]: { readonly name: N } & ParametersOf<Tables[N]>;
}[RateControlName];

/**
 * The options completed with defaults. Throws ERR_ROCE_OUT_OF_RANGE for a value, ERR_ROCE_UNKNOWN_NAME for a parameter that the scheme
 * lacks.
 */
export function rateControlSettings({ name, ...given }: RateControlOptions): RateControlSettings {
  return { name, ...completeParameters(RATE_CONTROL_TABLES[name], given) } as RateControlSettings;
}

/** For the command ring: the scheme's number and its parameters as a block of numbers. */
export function packRateControl(options: RateControlOptions): { number: number; block: Float64Array } {
  const settings = rateControlSettings(options);
  const block = packParameters(RATE_CONTROL_TABLES[settings.name], settings as unknown as Record<string, number>);
  return { number: RATE_CONTROL_NAMES.indexOf(settings.name), block };
}

/** From the command ring. Throws ERR_ROCE_UNKNOWN_NAME for a number that names no scheme, ERR_ROCE_OUT_OF_RANGE for parameters. */
export function unpackRateControl(number: number, block: Float64Array): RateControlSettings {
  const name = RATE_CONTROL_NAMES[number];
  if (name === undefined) {
    throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `there is no rate control number ${number}`);
  }
  return { name, ...unpackParameters(RATE_CONTROL_TABLES[name], block) } as RateControlSettings;
}

/** Throws ERR_ROCE_CONFLICT for parameters that contradict each other. */
export function createRateControl(settings: RateControlSettings): RateControl {
  switch (settings.name) {
    case 'none':
      return new ConstantRate({ rateBps: Number.POSITIVE_INFINITY });
    case 'fixed':
      return new ConstantRate(settings);
    case 'dcqcn':
      return new ReactionPoint(settings);
    case 'timely':
      return new Timely(settings);
    case 'patched-timely':
      return new PatchedTimely(settings);
  }
}
