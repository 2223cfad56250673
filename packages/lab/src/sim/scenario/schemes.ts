/** Rate controls and recovery schemes in scenario files: a name, or a name with parameters, whose times and rates may have units. */

import { z } from 'zod';
import { RoceError } from '../../core/errors.js';
import { type RateControlOptions, rateControlNames } from '../../dcqcn/schemes.js';
import { type RecoveryOptions, recoveryNames } from '../../retransmit/schemes.js';
import { readRateControl } from '../../schema/written-rate-control.js';
import { readRecovery } from '../../schema/written-recovery.js';

/** Reads `"dcqcn"` or `{"name": "dcqcn", ...parameters}`; refuses unknown schemes and parameters with the list of known ones. */
function scheme<T>(
  kind: string,
  names: () => readonly string[],
  read: (name: string, parameters: Readonly<Record<string, unknown>>) => T,
) {
  const written = z.union([z.string(), z.looseObject({ name: z.string() })], {
    error: () => `a ${kind} is one of ${names().join(', ')}, or { "name": one of them } with parameters`,
  });
  return written.transform((value, context): T => {
    try {
      const { name, ...parameters } = typeof value === 'string' ? { name: value } : value;
      return read(name, parameters);
    } catch (error) {
      if (!(error instanceof RoceError)) throw error;
      context.addIssue({ code: 'custom', message: error.message });
      return z.NEVER;
    }
  });
}

/** Of `nic.cc`, `flows[].cc` and `flows[].sinkCc`. */
export const rateControl = scheme<RateControlOptions>('rate control', rateControlNames, readRateControl);

/** Of `nic.recovery`. */
export const recovery = scheme<RecoveryOptions>('recovery scheme', recoveryNames, readRecovery);
