/**
 * Each mutant of our engine is found by a case of the rule that it breaks, and each case finds a mutant: a case that finds none might as well not be
 * there. Prints the score. `npm run test:conform`.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ruleOf } from '../../src/audit/catalogue.js';
import { CASES, TESTED_RULES } from '../../src/conform/cases.js';
import { MUTANTS } from './mutants.js';
import { mutatedEngine } from './mutated-engine.js';

let folder: string;
/** Names of cases that failed, by mutant. */
const found = new Map<string, readonly string[]>();
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-mutants-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('a mutant that', () => {
  it.each(MUTANTS.map((mutant, index) => ({ ...mutant, index })))('$name breaks rule $rule', async (mutant) => {
    const engine = await mutatedEngine(folder, `mutant-${mutant.index}`, mutant.edits);
    const failed = engine.failed(await engine.runSimulated({ via: mutant.via ?? 'cm' }));
    found.set(mutant.name, failed);
    const ofRule = CASES.filter(({ rules }) => rules.includes(mutant.rule)).map(({ name }) => name);
    expect(
      failed.filter((name) => ofRule.includes(name)),
      `it failed in: ${failed.join(', ')}`,
    ).not.toEqual([]);
  });
});

describe('the score', () => {
  it('is 100 per cent: every rule has a mutant, and every case finds one', () => {
    const musts = TESTED_RULES.filter((rule) => ruleOf(rule)!.severity === 'must');
    const killed = MUTANTS.filter(({ name, rule }) =>
      found.get(name)?.some((failed) => CASES.find((testCase) => testCase.name === failed)!.rules.includes(rule)),
    );
    console.log(
      `${killed.length} of ${MUTANTS.length} mutants found by ${CASES.length} cases of ${TESTED_RULES.length} rules, ${musts.length} of level must`,
    );
    expect(TESTED_RULES.filter((rule) => !MUTANTS.some((mutant) => mutant.rule === rule))).toEqual([]);
    const useful = new Set([...found.values()].flat());
    expect(CASES.filter(({ name }) => !useful.has(name)).map(({ name }) => name)).toEqual([]);
  });
});
