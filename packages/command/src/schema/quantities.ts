/**
 * Fields with a unit: text as on the command line (`85us`, `40Gbps`, `64KiB`), or a plain number of ns, bit/s or bytes.
 */

import { parseDurationNs, parseRateBps, parseSizeBytes } from 'rocev2/internal/core';
import { z } from 'zod';
import { parseOrIssue } from './parsed-text.js';

function quantity(parse: (text: string) => number) {
  const written = z.union([z.string(), z.number().nonnegative()], {
    error: ({ input }) => (input === undefined ? 'is missing' : 'write a number from 0 up, or text with a unit'),
  });
  return written.transform((value, context): number =>
    typeof value === 'number' ? value : parseOrIssue(parse, value, context),
  );
}

export const time = quantity(parseDurationNs);
export const rate = quantity(parseRateBps).refine((value) => value > 0, 'a rate is more than 0');
export const size = quantity(parseSizeBytes);
