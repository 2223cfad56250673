/** A run of consecutive seeds as one test suite. */

import { describe, expect, it } from 'vitest';
import { replayHint, runCreditSeed, runPlacementSeed, runProtectedSeed, runSeed } from './run-seed.js';

/** Seeds [first, first + count). */
export function describeSeeds(first: number, count: number): void {
  describe('two simulated hosts over a faulty link deliver every byte and completion exactly once', () => {
    it.each(Array.from({ length: count }, (_, i) => first + i))('seed %i', async (seed) => {
      const report = await runSeed(seed);
      expect(report.failures, `${report.description}\n${replayHint(seed)}`).toEqual([]);
    });
  });
}

/** The same seeds with packets that are protected. */
export function describeProtectedSeeds(seeds: readonly number[]): void {
  describe('two simulated hosts with protected packets deliver every byte and completion exactly once', () => {
    it.each(seeds)('seed %i', async (seed) => {
      const report = await runProtectedSeed(seed);
      expect(report.failures, report.description).toEqual([]);
    });
  });
}

/** The same seeds with RCCC in the place of every rate control. */
export function describeCreditSeeds(seeds: readonly number[]): void {
  describe('two simulated hosts with credit by the receiver deliver every byte and completion exactly once', () => {
    it.each(seeds)('seed %i', async (seed) => {
      const report = await runCreditSeed(seed);
      expect(report.failures, report.description).toEqual([]);
    });
  });
}

/** The same seeds with FLUSH and ATOMIC WRITE among the operations. */
export function describePlacementSeeds(seeds: readonly number[]): void {
  describe('two simulated hosts with FLUSH and ATOMIC WRITE deliver every byte and completion exactly once', () => {
    it.each(seeds)('seed %i', async (seed) => {
      const report = await runPlacementSeed(seed);
      expect(report.failures, report.description).toEqual([]);
    });
  });
}
