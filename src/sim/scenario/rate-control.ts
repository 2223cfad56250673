/** Rate controls in scenario files: a name, or a name with parameters, whose times and rates may have units. */

import { z } from 'zod';
import { RoceError } from '../../core/errors.js';
import { parseDurationNs, parseRateBps, parseSizeBytes } from '../../core/units.js';
import { RATE_CONTROL_NAMES, type RateControlName } from '../../dcqcn/rate-control.js';
import { type RateControlOptions, rateControlSettings } from '../../dcqcn/schemes.js';

const name = z.enum(RATE_CONTROL_NAMES);

export const rateControl = z.union([name, z.looseObject({ name })]).transform((value, context): RateControlOptions => {
  try {
    const { name: scheme, ...parameters } = typeof value === 'string' ? { name: value } : value;
    return checked(scheme, parameters);
  } catch (error) {
    if (!(error instanceof RoceError)) throw error;
    context.addIssue({ code: 'custom', message: error.message });
    return z.NEVER;
  }
});

function checked(scheme: RateControlName, parameters: Readonly<Record<string, unknown>>): RateControlOptions {
  const numbers = Object.entries(parameters).map(([key, value]) => [key, numberOf(key, value)]);
  const options = { name: scheme, ...Object.fromEntries(numbers) } as RateControlOptions;
  rateControlSettings(options);
  return options;
}

/** The end of a parameter's name says which units it takes. */
function numberOf(key: string, value: unknown): number {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string') throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `${key} is no number`);
  if (key.endsWith('Ns')) return parseDurationNs(value);
  if (key.endsWith('Bps')) return parseRateBps(value);
  if (key.endsWith('Bytes')) return parseSizeBytes(value);
  throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `${key} is no number`);
}
