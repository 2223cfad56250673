import { expect } from 'vitest';
import { CASES } from '../../src/conform/cases.js';
import { failed, runSimulated } from './simulated-target.js';

/** A lossy wire makes nobody fail, and leaves most verdicts as they are. */
export async function expectSureUnderLoss(seed: number): Promise<void> {
  const outcome = await runSimulated({ seed, loss: 0.02 });
  expect(failed(outcome)).toEqual([]);
  const sure = outcome.results.filter(({ verdict }) => verdict === 'passed');
  expect(sure.length).toBeGreaterThan(CASES.length / 2);
}
