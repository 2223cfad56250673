/** Our own NIC passes every case, in virtual time; and a lossy wire makes nobody fail. */

import { describe, expect, it } from 'vitest';
import { ruleOf } from '../../src/audit/catalogue.js';
import { CASES, TESTED_RULES } from '../../src/conform/cases.js';
import { failed, runSimulated } from './simulated-target.js';

const notPassed = (results: Awaited<ReturnType<typeof runSimulated>>['results']) =>
  results
    .filter(({ verdict }) => verdict !== 'passed')
    .map(({ name, verdict, text }) => `${name}: ${verdict}: ${text}`);

describe('our own NIC', () => {
  it.each([
    ['IPv4, MTU 256', { family: 4, mtu: 256 }],
    ['IPv6, MTU 1024', { family: 6, mtu: 1024 }],
    ['IPv4, MTU 4096', { family: 4, mtu: 4096 }],
  ] as const)('passes every case over %s', async (_name, run) => {
    const { facts, results, unsound } = await runSimulated(run);
    expect(facts).toEqual({ isTarget: true, depth: 4 });
    expect(notPassed(results)).toEqual([]);
    expect(results).toHaveLength(CASES.length);
    expect(unsound).toBe(0);
  });

  it('as any service passes what needs only a connection, and the rest does not apply', async () => {
    const { facts, results } = await runSimulated({ isForeign: true });
    expect(facts).toMatchObject({ isTarget: false });
    expect(results.filter(({ verdict }) => verdict === 'failed')).toEqual([]);
    for (const { name, needs = [] } of CASES) {
      const { verdict } = results.find((result) => result.name === name)!;
      expect(`${name}: ${verdict}`).toBe(
        `${name}: ${needs.every((need) => need === 'traffic class') ? 'passed' : 'not applicable'}`,
      );
    }
  });

  it.each([1, 2, 3])('fails nothing when one packet in 50 is lost (seed %i)', async (seed) => {
    const outcome = await runSimulated({ seed, loss: 0.02 });
    expect(failed(outcome)).toEqual([]);
    const sure = outcome.results.filter(({ verdict }) => verdict === 'passed');
    expect(sure.length).toBeGreaterThan(CASES.length / 2);
  });
});

describe('the cases', () => {
  it('have names of their own, rules of the catalogue, and few packets', async () => {
    expect(new Set(CASES.map(({ name }) => name)).size).toBe(CASES.length);
    for (const rule of TESTED_RULES) expect(ruleOf(rule), `rule ${rule}`).toMatchObject({ conform: true });
    const { sent } = await runSimulated();
    expect(sent / CASES.length).toBeLessThan(20);
  });
});
