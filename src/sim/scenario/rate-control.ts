/** Rate controls in scenario files: a name, or a name with parameters, whose times and rates may have units. */

import { z } from 'zod';
import { RoceError } from '../../core/errors.js';
import { type RateControlOptions, rateControlNames } from '../../dcqcn/schemes.js';
import { readRateControl } from '../../schema/written-rate-control.js';

const name = z.enum(rateControlNames());
const written = z.union([name, z.looseObject({ name })], {
  error: `a rate control is one of ${rateControlNames().join(', ')}, or { "name": one of them } with parameters`,
});

/** Reads `"dcqcn"` or `{"name": "dcqcn", ...parameters}`; refuses unknown schemes and parameters with the list of known ones. */
export const rateControl = written.transform((value, context): RateControlOptions => {
  try {
    const { name: scheme, ...parameters } = typeof value === 'string' ? { name: value } : value;
    return readRateControl(scheme, parameters);
  } catch (error) {
    if (!(error instanceof RoceError)) throw error;
    context.addIssue({ code: 'custom', message: error.message });
    return z.NEVER;
  }
});
