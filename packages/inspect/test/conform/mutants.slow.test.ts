/** The mutants fit the sources, and two of them are found. `npm run test:conform` runs them all. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TESTED_RULES } from '../../src/conform/cases.js';
import { MUTANTS } from './mutants.js';
import { mutatedEngine } from './mutated-engine.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-mutants-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

it('each edit finds its place in the sources once, and each rule has a mutant', () => {
  for (const { file, find } of MUTANTS.flatMap(({ edits }) => edits)) {
    const text = readFileSync(join(import.meta.dirname, '../../../../src', file), 'utf8');
    expect(text.split(find).length - 1, `src/${file}: ${find}`).toBe(1);
  }
  expect([...new Set(MUTANTS.map(({ rule }) => rule))].sort((a, b) => a - b)).toEqual(TESTED_RULES);
});

it.each([
  ['reports a gap for each packet behind it', ['gap/one-nak']],
  ['takes a long ONLY', ['length/write-only-long']],
])('a mutant that %s fails in %j alone', async (name, cases) => {
  const { edits } = MUTANTS.find((mutant) => mutant.name === name)!;
  const engine = await mutatedEngine(folder, name.replaceAll(' ', '-'), edits);
  expect(engine.failed(await engine.runSimulated())).toEqual(cases);
});
