/** Which flows a scenario means: how many work requests, sizes, loads, incasts, lists. */

import { describe, expect, test } from 'vitest';
import { SeededRandom } from '../../../../../src/core/random.js';
import { planFlows } from '../../../src/sim/scenario/flow-plan.js';
import { parseScenario, type ScenarioFile } from '../../../src/sim/scenario/schema.js';
import { topologyOf } from '../../../src/sim/scenario/topology-of.js';

function plan(flows: ScenarioFile['flows'], more: Partial<ScenarioFile> = {}) {
  const scenario = parseScenario({
    name: 'plan',
    duration: '10ms',
    topology: { kind: 'star', hosts: 9, rate: '10Gbps' },
    ...more,
    flows,
  });
  return planFlows(scenario, topologyOf(scenario.topology), new SeededRandom(1));
}

describe('work requests', () => {
  test('are posted beyond what the NIC may have in flight, so that they never limit a flow', () => {
    const [flow] = plan([{ kind: 'flows', from: 'h0', to: 'h1' }]);
    expect(flow.outstanding * flow.messageBytes).toBeGreaterThan(16_384 * 1024);
  });

  test('are no more than the flow has, or than is said', () => {
    const ends = { kind: 'flows', from: 'h0', to: 'h1' } as const;
    expect(plan([{ ...ends, bytes: '130KiB' }])[0].outstanding).toBe(3);
    expect(plan([{ ...ends, outstanding: 8 }])[0].outstanding).toBe(8);
  });
});

describe('arrivals at random', () => {
  const poisson = { kind: 'poisson', from: 'h0..h7', to: 'h8' } as const;
  const bytesOf = (flows: ReadonlyArray<{ bytes: number }>) => flows.reduce((sum, { bytes }) => sum + bytes, 0);

  test.each(['web-search', 'fb-hadoop', 'ali-storage'] as const)('of %s offer the load that was asked for', (sizes) => {
    const flows = plan([{ ...poisson, sizes, load: 0.5 }], { duration: '400ms' });
    // Eight links of 10 Gb/s, half of them for 400 ms.
    expect(bytesOf(flows) / ((0.5 * 80e9 * 0.4) / 8)).toBeGreaterThan(0.9);
    expect(bytesOf(flows) / ((0.5 * 80e9 * 0.4) / 8)).toBeLessThan(1.1);
  });

  test('of sizes of one’s own keep to them', () => {
    const flows = plan([
      {
        ...poisson,
        offered: '1Gbps',
        sizes: [
          [1000, 0],
          [2000, 50],
          ['4KB', 100],
        ],
      },
    ]);
    const sizes = flows.map(({ bytes }) => bytes);
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(1000);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4000);
    expect(sizes.filter((bytes) => bytes <= 2000).length / sizes.length).toBeCloseTo(0.5, 1);
  });

  test.each([
    ['neither offered nor load', {}],
    ['both', { offered: 1e9, load: 0.5 }],
    [
      'sizes that fall',
      {
        offered: 1e9,
        sizes: [
          [0, 0],
          [10, 60],
          [5, 100],
        ],
      },
    ],
    [
      'sizes that do not end at 100 %',
      {
        offered: 1e9,
        sizes: [
          [0, 0],
          [10, 60],
        ],
      },
    ],
  ])('with %s are refused', (_what, fields) => {
    expect(() => plan([{ ...poisson, ...fields } as never])).toThrow('flows[0]');
  });
});

describe('an incast', () => {
  test('has so many senders at once, all different, none of them the receiver', () => {
    const flows = plan([{ kind: 'incast', from: 'h0..h8', to: 'h0..h8', fanIn: 8, bytes: '500KB', every: '1ms' }]);
    expect(flows).toHaveLength(80);
    for (let k = 0; k < 10; k++) {
      const one = flows.slice(8 * k, 8 * k + 8);
      expect(new Set(one.map(({ startNs }) => startNs))).toEqual(new Set([k * 1e6]));
      expect(new Set(one.map(({ from }) => from)).size).toBe(8);
      expect(new Set(one.map(({ to }) => to)).size).toBe(1);
      expect(one.every(({ from, to }) => from !== to)).toBe(true);
    }
    expect(new Set(flows.map(({ to }) => to)).size).toBeGreaterThan(3);
  });

  test('of more senders than there are is refused', () => {
    expect(() => plan([{ kind: 'incast', from: 'h0..h3', to: 'h0', fanIn: 4, bytes: 1, every: '1ms' }])).toThrow(
      'fewer than 4 hosts',
    );
  });
});

describe('a list', () => {
  test('is taken as it is', () => {
    const flows = plan([{ kind: 'list', flows: [{ from: 'h0', to: 'h1', bytes: 7, start: '1us' }] }]);
    expect(flows).toMatchObject([{ from: 'h0', to: 'h1', bytes: 7, startNs: 1000, messageBytes: 7, outstanding: 1 }]);
  });

  test.each([
    ['a host that is not there', { from: 'h0', to: 'h9', bytes: 1 }, "'h9' is not there"],
    ['a flow to oneself', { from: 'h0', to: 'h0', bytes: 1 }, 'sends to itself'],
  ])('with %s is refused', (_what, flow, message) => {
    expect(() => plan([{ kind: 'list', flows: [flow] }])).toThrow(message);
  });
});
