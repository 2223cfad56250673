import { readRateControl, readRecovery } from '@rocev2/command/schema';
import { RoceError } from 'rocev2/internal/core';
import { type RateControlOptions, rateControlNames } from 'rocev2/internal/dcqcn';
import { type RecoveryOptions, recoveryNames } from 'rocev2/internal/retransmit';
import { z } from 'zod';

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

export const rateControl = scheme<RateControlOptions>('rate control', rateControlNames, readRateControl);

export const recovery = scheme<RecoveryOptions>('recovery scheme', recoveryNames, readRecovery);
