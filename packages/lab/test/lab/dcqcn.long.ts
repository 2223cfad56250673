/** DCQCN with packets beside the fluid model of it, on the long ramp at 40 Gb/s. docs/lab.md has the table, and says where they differ. */

import { describe, expect, test } from 'vitest';
import { casesOfRound } from '../../../../test/support/rounds.js';
import { DCQCN_LONG_RAMP, dcqcnStudy, togetherAtStart } from '../../src/fluid/index.js';
import type { ScenarioResult } from '../../src/sim/scenario/result.js';
import { failuresOf, runBuiltIn } from './run-built-in.js';

function fluidQueueBytes(flows: number): number {
  const study = dcqcnStudy({ groups: togetherAtStart(flows), delayNs: 4000, parameters: DCQCN_LONG_RAMP });
  return study.fixedPoint!.queueBytes!;
}

describe('a feedback delay of 4 us', () => {
  test.each(casesOfRound([2, 10, 16, 64]))(
    '%i flows stay near the fixed point, share fairly and fill the link',
    async (flows) => {
      const result = await runBuiltIn(`dcqcn-n${flows}-4us`);
      expect(failuresOf(result)).toEqual([]);
      const { summary } = result;
      expect(summary.queueMeanBytes / fluidQueueBytes(flows)).toBeGreaterThan(0.7);
      expect(summary.queueMeanBytes / fluidQueueBytes(flows)).toBeLessThan(1.8);
      expect(summary.efficiency).toBeGreaterThan(0.99);
      expect(summary.jain).toBeGreaterThan(0.97);
    },
  );
});

/** How often the bottleneck had next to nothing in its queue, in the second half of the run. */
function emptyShare({ series, summary }: Pick<ScenarioResult, 'series' | 'summary'>): number {
  const late = series.queueBytes['s0>h10'].slice(-500);
  return late.filter((bytes) => bytes < 0.05 * summary.queueMeanBytes).length / late.length;
}

describe('a feedback delay of 85 us', () => {
  test('ten flows swing: the queue runs empty and doubles, which it does not at 4 us', async () => {
    const { series, summary } = await runBuiltIn('dcqcn-n10-85us');
    const late = series.queueBytes['s0>h10'].slice(-500);
    expect(Math.min(...late)).toBeLessThan(0.02 * summary.queueMeanBytes);
    expect(Math.max(...late)).toBeGreaterThan(2 * summary.queueMeanBytes);
    const near = await runBuiltIn('dcqcn-n10-4us');
    expect(emptyShare(near)).toBeLessThan(0.04);
    expect(emptyShare({ series, summary })).toBeGreaterThan(3 * emptyShare(near));
  });

  test('the short ramp loses throughput with the number of flows, as its fluid model does', async () => {
    const efficiencies: number[] = [];
    for (const flows of [2, 10, 64])
      efficiencies.push((await runBuiltIn(`dcqcn-n${flows}-85us-short`)).summary.efficiency);
    // The model: 1, 0.949 and 0.864.
    expect(efficiencies[0]).toBeGreaterThan(0.98);
    expect(Math.abs(efficiencies[1] - 0.949)).toBeLessThan(0.025);
    expect(Math.abs(efficiencies[2] - 0.864)).toBeLessThan(0.025);
  });
});

describe('where packets and equations part', () => {
  test.each(casesOfRound([10, 16]))(
    'a cut at every mark, as in the equations, brings %i flows to the fixed point',
    async (flows) => {
      const { summary } = await runBuiltIn(
        `dcqcn-n${flows}-4us`,
        'nic.cc.cnpIntervalNs=0',
        'nic.cc.decreaseIntervalNs=0',
      );
      expect(summary.queueMeanBytes / fluidQueueBytes(flows)).toBeGreaterThan(0.9);
      expect(summary.queueMeanBytes / fluidQueueBytes(flows)).toBeLessThan(1.2);
    },
  );

  test('64 flows swing because they reach the end of the ramp, where all are cut at once', async () => {
    const swinging = await runBuiltIn('dcqcn-n64-85us');
    const sameSlope = await runBuiltIn('dcqcn-n64-85us', 'switch.ecn.kmaxBytes=8MB', 'switch.ecn.pmax=0.4');
    expect(swinging.summary.queueP99Bytes).toBeGreaterThan(2_000_000);
    expect(swinging.summary.efficiency).toBeLessThan(0.97);
    expect(sameSlope.summary.efficiency).toBeGreaterThan(0.995);
  });

  test("with ns3-rdma's parameters ten flows stand where that simulator's do", async () => {
    const { summary } = await runBuiltIn('dcqcn-n10-4us', 'nic.cc={"name":"dcqcn","preset":"ns3-rdma"}');
    // Its mean is 145 KB, its p99 390 KB.
    expect(Math.abs(summary.queueMeanBytes / 145_000 - 1)).toBeLessThan(0.1);
    expect(Math.abs(summary.queueP99Bytes / 390_000 - 1)).toBeLessThan(0.1);
  });

  test('an interval that begins at the last packet instead of running free leaves a longer queue', async () => {
    const { summary } = await runBuiltIn('dcqcn-n10-4us', 'nic.cc={"name":"dcqcn","preset":"ns3-rdma","cnpPhase":0}');
    expect(summary.queueMeanBytes / 145_000).toBeGreaterThan(1.1);
  });
});
