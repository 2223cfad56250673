/** DCQCN's parameters from packets alone: a simulated transfer with known ones, marked by a fault rule. */

import { describe, expect, it } from 'vitest';
import { capturedDatagram } from '../../../../test/support/captured.js';
import { createPair } from '../../../../test/support/pair.js';
import { Audit } from '../../src/audit/audit.js';
import { FITTED_CNPS_MIN, fitDcqcn } from '../../src/audit/dcqcn-fit.js';

const LINK_BPS = 10e9;
const MESSAGE = 1 << 20;
/** docs/conformance.md states them: factors. */
const TOLERANCES = [
  ['gain', 1.3],
  ['rateTimerNs', 1.1],
  ['additiveIncreaseBps', 1.5],
] as const;

interface Known {
  readonly gain: number;
  readonly rateTimerNs: number;
  readonly additiveIncreaseBps: number;
}

/** So many WRITEs of 1 MiB, of which this share of the packets is marked. */
async function transfer(known: Known, { messages = 32, share = 1 / 600 } = {}): Promise<ReturnType<Audit['report']>> {
  const audit = new Audit({ fitsRates: true });
  const pair = await createPair({
    mtu: 1024,
    rateBps: LINK_BPS,
    faults: `a>b:random=${share},mark`,
    attrA: {
      rateControl: {
        name: 'dcqcn',
        linkRateBps: LINK_BPS,
        minimumRateBps: LINK_BPS / 1e4,
        alphaIntervalNs: known.rateTimerNs,
        byteCounterBytes: 0,
        ...known,
      },
    },
    onWireOfA: (datagram, nowNs) => audit.take(capturedDatagram(datagram, nowNs)),
  });
  const { a, b } = pair;
  for (let sent = 0; sent < messages; sent++) {
    a.qp.postSend({ opcode: 'RDMA_WRITE', sges: [a.mr.sge(0, MESSAGE)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
  }
  pair.completions(a.cq, messages);
  return audit.report();
}

function fitted({ measures }: ReturnType<Audit['report']>): Partial<Known> {
  const median = (name: string) => measures.find((measure) => measure.name === name)?.median ?? Number.NaN;
  return {
    gain: 1 / median('DCQCN g, fitted'),
    rateTimerNs: median('DCQCN rate timer, fitted'),
    additiveIncreaseBps: median('DCQCN R_AI, fitted'),
  };
}

describe('DCQCN, fitted to the rate after CNPs', () => {
  it.each([
    { gain: 1 / 64, rateTimerNs: 100e3, additiveIncreaseBps: 100e6 },
    { gain: 1 / 256, rateTimerNs: 55e3, additiveIncreaseBps: 40e6 },
  ])('finds %j', async (known) => {
    const found = fitted(await transfer(known));
    for (const [name, tolerance] of TOLERANCES) {
      expect(found[name]! / known[name], `${name} ${found[name]}`).toBeGreaterThan(1 / tolerance);
      expect(found[name]! / known[name], `${name} ${found[name]}`).toBeLessThan(tolerance);
    }
  });

  it('tells that the rate falls after a CNP', async () => {
    const { measures } = await transfer({ gain: 1 / 16, rateTimerNs: 55e3, additiveIncreaseBps: 40e6 });
    const after = measures.find(({ name }) => name === 'rate after a CNP')!;
    expect(after.count).toBeGreaterThan(20);
    expect(after.median).toBeLessThan(97);
    expect(after.min).toBeLessThan(80);
  });

  it('cannot tell from a few CNPs, and says so', async () => {
    const known = { gain: 1 / 64, rateTimerNs: 55e3, additiveIncreaseBps: 40e6 };
    const report = await transfer(known, { messages: 4, share: 1 / 1000 });
    expect(fitted(report).gain).toBeNaN();
    expect(report.choices.map(({ rule, choice }) => [rule, choice])).toContainEqual([
      88,
      `fewer than ${FITTED_CNPS_MIN} CNPs for a queue pair: they do not tell DCQCN's parameters`,
    ]);
  });

  it('does not fit what is no DCQCN', () => {
    const bins = Array.from({ length: 400 }, (_, i) => i);
    const record = {
      endNs: bins.map((i) => (i + 1) * 1000),
      spanNs: bins.map(() => 1000),
      bytes: bins.map((i) => (i % 2 === 0 ? 1000 : 12_000)), // as if nothing had come
      cnpNs: bins.filter((i) => i % 10 === 0).map((i) => i * 1000),
      rateBefore: 96e9,
    };
    expect(fitDcqcn(record)).toBeUndefined();
    expect(fitDcqcn({ ...record, cnpNs: record.cnpNs.slice(0, FITTED_CNPS_MIN - 1) })).toBeUndefined();
  });
});
