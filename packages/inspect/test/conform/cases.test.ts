/** Our own NIC passes every case, in virtual time; and a lossy wire makes nobody fail. */

import { describe, expect, it } from 'vitest';
import { decodeRoce } from '../../../../src/port/capture/decoded-packet.js';
import { ruleOf } from '../../src/audit/catalogue.js';
import { CASES, TESTED_RULES } from '../../src/conform/cases.js';
import { datagramOf } from '../../src/conform/evidence.js';
import type { TestCase } from '../../src/conform/step.js';
import { runSimulated } from './simulated-target.js';
import { expectSureUnderLoss } from './sure-under-loss.js';

const notPassed = (results: Awaited<ReturnType<typeof runSimulated>>['results']) =>
  results
    .filter(({ verdict }) => verdict !== 'passed')
    .map(({ name, verdict, text }) => `${name}: ${verdict}: ${text}`);

function needsOnlyConnection({ needs = [], connect }: TestCase): boolean {
  const { order, startPsn } = connect?.(256) ?? {};
  const isOpen = needs.every((need) => need === 'traffic class' || need === 'RDMA CM');
  return isOpen && order === undefined && startPsn === undefined;
}

describe('our own NIC', () => {
  it('passes every case, with few packets', async () => {
    const cases = CASES.filter(({ connect }) => connect?.(256).order?.timeout !== 0);
    const { facts, results, unsound, sent } = await runSimulated({ cases });
    expect(facts).toEqual({ isTarget: true, depth: 4 });
    expect(notPassed(results)).toEqual([]);
    expect(results).toHaveLength(cases.length);
    expect(unsound).toBe(0);
    expect(sent / CASES.length).toBeLessThan(20);
  });

  it('passes by an agent, over IPv6, what is not about RDMA CM', async () => {
    const cases = CASES.filter(({ needs = [] }) => !needs.includes('RDMA CM') && !needs.includes('window'));
    const { facts, results } = await runSimulated({ via: 'agent', family: 6, mtu: 1024, cases });
    expect(facts).toEqual({ isTarget: true, depth: 4 });
    expect(notPassed(results)).toEqual([]);
  });

  it('shows with each verdict what was done and all packets', async () => {
    const { results } = await runSimulated({ cases: CASES.filter(({ name }) => name === 'gap/nak') });
    const [{ steps, packets }] = results;
    expect(steps.slice(0, 4)).toEqual([
      'send RDMA_WRITE_ONLY with PSN 0',
      'expect ACK of PSN 0, MSN 1',
      'send RDMA_WRITE_ONLY with PSN 2',
      'expect NAK 0x60 (sequence) at PSN 1',
    ]);
    const decoded = packets.map((packet) => decodeRoce(datagramOf(packet)!, { ...packet, interfaceId: 0 }, true));
    expect(decoded.map(({ bth }) => bth!.operation).filter((name) => name.startsWith('RC'))).toEqual([
      ...['RC RDMA_WRITE_ONLY', 'RC ACKNOWLEDGE', 'RC RDMA_WRITE_ONLY', 'RC ACKNOWLEDGE'],
      ...['RC RDMA_WRITE_ONLY', 'RC ACKNOWLEDGE', 'RC RDMA_WRITE_ONLY', 'RC ACKNOWLEDGE'],
    ]);
    expect(decoded.every(({ icrc }) => icrc === 'ok')).toBe(true);
    expect(packets.map(({ number }) => number)).toEqual(packets.map((_, i) => packets[0].number + i));
  });

  it('as any service passes what needs only a connection, and the rest does not apply', async () => {
    const { facts, results } = await runSimulated({ isForeign: true });
    expect(facts).toMatchObject({ isTarget: false });
    expect(results.filter(({ verdict }) => verdict === 'failed')).toEqual([]);
    for (const testCase of CASES) {
      const { name, verdict } = results.find((result) => result.name === testCase.name)!;
      expect(`${name}: ${verdict}`).toBe(`${name}: ${needsOnlyConnection(testCase) ? 'passed' : 'not supported'}`);
    }
  });

  it('fails nothing when one packet in 50 is lost', async () => {
    await expectSureUnderLoss(1);
  });
});

describe('the cases', () => {
  it('have names of their own, and rules of the catalogue', () => {
    expect(new Set(CASES.map(({ name }) => name)).size).toBe(CASES.length);
    for (const rule of TESTED_RULES) expect(ruleOf(rule), `rule ${rule}`).toMatchObject({ conform: true });
  });
});
