import { ACKNOWLEDGEMENT_CASES } from './cases/acknowledgement-cases.js';
import { COMBINED_CASES } from './cases/combined.js';
import { CONGESTION_CASES } from './cases/congestion.js';
import { CONNECTION_CASES } from './cases/connection-cases.js';
import { ERROR_CASES } from './cases/errors.js';
import { FORMAT_CASES } from './cases/format-cases.js';
import { KEY_CASES } from './cases/keys.js';
import { PLACEMENT_CASES } from './cases/placement.js';
import { READ_CASES } from './cases/reads-and-atomics.js';
import { REQUESTER_CASES } from './cases/requester.js';
import { SEQUENCE_CASES } from './cases/sequences.js';
import { WRAP_CASES } from './cases/wrap.js';
import type { TestCase } from './step.js';

export const CASES: readonly TestCase[] = [
  ...FORMAT_CASES,
  ...SEQUENCE_CASES,
  ...ACKNOWLEDGEMENT_CASES,
  ...WRAP_CASES,
  ...READ_CASES,
  ...PLACEMENT_CASES,
  ...COMBINED_CASES,
  ...ERROR_CASES,
  ...KEY_CASES,
  ...CONGESTION_CASES,
  ...CONNECTION_CASES,
  ...REQUESTER_CASES,
];

/** The rules that at least one case checks, in order. */
export const TESTED_RULES: readonly number[] = [...new Set(CASES.flatMap(({ rules }) => rules))].sort((a, b) => a - b);
