import { describe, expect, it } from 'vitest';
import { closedFormEfficiency, type OptionalLossModel, windowUse } from '../../src/fluid/recovery-efficiency.js';
import { override } from '../../src/sim/scenario/overrides.js';
import { runScenario } from '../../src/sim/scenario/run-scenario.js';
import { parseScenario } from '../../src/sim/scenario/schema.js';
import { LIVELOCK_SCENARIOS } from '../../src/sim/scenarios/livelock.js';

const ONE_IN_256: OptionalLossModel = { kind: 'regular', period: 256 };

describe('the closed form for one packet in 256', () => {
  it.each([
    [16, 0.9336],
    [64, 0.7461],
    [128, 0.4961],
    [200, 0.2148],
    [255, 0],
    [300, 0.4121],
    [511, 0],
    [512, 0.332],
  ])('go-back-N with W = %i', (pipelineDepth, efficiency) => {
    expect(closedFormEfficiency('go-back-n', ONE_IN_256, 4096, pipelineDepth)).toBeCloseTo(efficiency, 4);
  });

  it('go-back-0 never delivers a message as long as the distance between losses', () => {
    expect(closedFormEfficiency('go-back-0', ONE_IN_256, 256, 16)).toBe(0);
    expect(closedFormEfficiency('go-back-0', ONE_IN_256, 255, 16)).toBeUndefined();
  });

  it('selective repeat does not care for W', () => {
    for (const w of [0, 16, 255]) {
      expect(closedFormEfficiency('selective-repeat', ONE_IN_256, 4096, w)).toBeCloseTo(0.9961, 4);
    }
  });
});

it.each([
  ['go-back-n', 16, 0.9375],
  ['go-back-n', 128, 0.6641],
  ['selective-repeat', 16, 0.9961],
] as const)('the closed form for random loss: %s with W = %i', (scheme, w, efficiency) => {
  expect(closedFormEfficiency(scheme, { kind: 'random', probability: 1 / 256 }, 4000, w)).toBeCloseTo(efficiency, 4);
});

it.each([
  [1e-5, 0.98],
  [1e-4, 0.812],
  [5e-4, 0.31],
  [1e-3, 0.0733],
  [1e-2, 1.2e-16],
])('the closed form for random loss of %s: go-back-0 with M = 4000, W = 16', (probability, efficiency) => {
  const ours = closedFormEfficiency('go-back-0', { kind: 'random', probability }, 4000, 16)!;
  expect(ours / efficiency).toBeGreaterThan(0.97);
  expect(ours / efficiency).toBeLessThan(1.03);
});

describe('the window of selective repeat', () => {
  const random: OptionalLossModel = { kind: 'random', probability: 0.01 };

  it('holds a lost packet for two round trips, and without a loss for one', () => {
    expect(windowUse(random, 1024, 100)).toBe(1);
    expect(windowUse(random, 1024, 1000)).toBeCloseTo((1024 + 100) / (2000 + 100), 12);
    expect(windowUse({ kind: 'none' }, 1024, 1000)).toBe(1);
    expect(windowUse({ kind: 'none' }, 1024, 2048)).toBeCloseTo(0.5, 3);
    // Lost twice: rarely, but for three round trips.
    expect(windowUse(random, 1024, 450)).toBeCloseTo((1024 + 1e4) / (1350 + 1e4), 12);
  });

  it('limits the simulated flow as in theory: cables of 50 us, a loss of 1 %', async () => {
    const file = LIVELOCK_SCENARIOS.find(({ name }) => name === 'livelock-selective-repeat');
    const changes = ['duration=10ms', 'payload=virtual', 'faults=h0>h1:random=0.01', 'topology.delay=50us'];
    const { summary } = await runScenario(parseScenario(override(file, changes)));
    // The first round trip, without acknowledgements, is part of the run.
    expect(Math.abs(summary.efficiency / summary.theoreticalEfficiency! - 1)).toBeLessThan(0.07);
    // Negative control: without the window, 99 %.
    expect(summary.efficiency).toBeLessThan(0.6);
  });
});
