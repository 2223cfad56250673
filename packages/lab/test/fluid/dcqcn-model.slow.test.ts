import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../../src/core/random.js';
import {
  DCQCN_LONG_RAMP,
  DCQCN_PI,
  DCQCN_SIGCOMM15,
  DcqcnModel,
  type DcqcnModelOptions,
  dcqcnConvergence,
  dcqcnFixedPoint,
  type FluidRun,
  hasSettled,
  simulate,
  togetherAtStart,
} from '../../src/fluid/index.js';
import { between, within } from './closeness.js';

const MS = 1e6;

type Overrides = Partial<Omit<DcqcnModelOptions, 'delayNs'>> & { durationMs?: number; observeMs?: number };

/** Runs `flows` flows from line rate at a delay in us; 150 ms of which the last 50 count, unless overridden. */
function integrate(flows: number, delayUs: number, overrides: Overrides = {}): FluidRun {
  const { durationMs = 150, observeMs = 50, ...options } = overrides;
  const model = new DcqcnModel({
    parameters: DCQCN_LONG_RAMP,
    groups: togetherAtStart(flows),
    ...options,
    delayNs: delayUs * 1e3,
  });
  return simulate(model, { durationNs: durationMs * MS, observeNs: observeMs * MS });
}

function expectQueueKb({ queueBytes }: FluidRun, min: number, max: number, tolerance: number): void {
  expect(queueBytes.min / 1e3).toSatisfy(between(min - tolerance, min + tolerance));
  expect(queueBytes.max / 1e3).toSatisfy(between(max - tolerance, max + tolerance));
}

describe('the DCQCN model in time, on the long ramp', () => {
  it.each([1, 4, 25, 50])('settles at its fixed point for 2, 10 and 64 flows at %i us', (delayUs) => {
    for (const flows of [2, 10, 64]) {
      const { queueBytes, rateBps, utilization } = integrate(flows, delayUs);
      const rest = dcqcnFixedPoint(DCQCN_LONG_RAMP, flows).queueBytes!;
      expect(queueBytes.min).toSatisfy(within(rest, 0.005));
      expect(queueBytes.max).toSatisfy(within(rest, 0.005));
      expect(rateBps[0].mean).toSatisfy(within(40e9 / flows, 0.001));
      expect(utilization).toBe(1);
    }
  });

  it('settles at 4 us for every number of flows from 2 to 100', () => {
    for (const flows of [3, 5, 6, 8, 16, 20, 32, 50, 80, 100]) {
      const rest = dcqcnFixedPoint(DCQCN_LONG_RAMP, flows).queueBytes!;
      const { queueBytes } = integrate(flows, 4);
      expect(queueBytes.mean, `${flows} flows`).toSatisfy(within(rest, 0.01));
      expect(hasSettled(queueBytes), `${flows} flows`).toBe(true);
    }
  });

  it('lets a single flow send at line rate without a queue', () => {
    const { queueBytes, rateBps } = integrate(1, 4);
    expect(queueBytes.max).toBe(0);
    expect(rateBps[0].min).toBe(40e9);
  });

  it('at 85 us swings between 0 and 276 KB for ten flows, as the published figure 4 does', () => {
    const run = integrate(10, 85);
    expect(run.queueBytes.min).toBe(0);
    expect(run.queueBytes.max / 1e3).toSatisfy(within(275.6, 0.01));
    expect(run.rateBps[0].min / 1e9).toSatisfy(within(3.7, 0.005));
    expect(run.rateBps[0].max / 1e9).toSatisfy(within(4.299, 0.005));
    expect(run.utilization).toSatisfy(between(0.995, 0.999));
    expect(hasSettled(run.queueBytes)).toBe(false);
  });

  it('at 85 us leaves 2 flows ringing slowly about their fixed point, and 64 flows at rest', () => {
    const two = integrate(2, 85);
    expectQueueKb(two, 20.1, 20.9, 0.1);
    expect(hasSettled(two.queueBytes)).toBe(true);
    expect(integrate(64, 85).queueBytes.mean / 1e3).toSatisfy(within(1183.1, 0.001));
  });

  it('at 100 us swings for 2 and 10 flows and rests for 64', () => {
    expectQueueKb(integrate(2, 100), 0, 40.9, 0.5);
    expectQueueKb(integrate(10, 100), 0, 286.1, 2);
    expectQueueKb(integrate(64, 100), 1183.1, 1183.1, 0.5);
  });

  it('loses stability for ten flows between 60 and 68 us', () => {
    const late = { durationMs: 400 };
    expectQueueKb(integrate(10, 60, late), 125.3, 125.3, 0.5);
    expect(hasSettled(integrate(10, 64, late).queueBytes)).toBe(true);
    expectQueueKb(integrate(10, 68, late), 0, 266, 2);
  });

  it('keeps its limit cycle when the step is four times finer', () => {
    const coarse = integrate(10, 85).queueBytes;
    const fine = integrate(10, 85, { stepNs: 250 }).queueBytes;
    expect(fine.max).toSatisfy(within(coarse.max, 0.01));
  });

  it('gives the same trajectory twice, and the same for one group of ten flows as for ten groups of one', () => {
    const [once, twice] = [integrate(10, 85), integrate(10, 85)];
    expect(twice).toEqual(once);
    const apart = integrate(10, 85, { groups: Array.from({ length: 10 }, () => ({ count: 1, startNs: 0 })) });
    expect(apart.queueBytes.max).toSatisfy(within(once.queueBytes.max, 0.002));
    for (const { mean } of apart.rateBps) expect(mean).toSatisfy(within(once.rateBps[0].mean, 0.002));
  });
});

describe('the remedies for ten flows', () => {
  const settled = { durationMs: 400 };

  it.each([
    ['R_AI 10 Mb/s', { additiveIncreaseBps: 10e6 }, 87.4],
    ['R_AI 5 Mb/s', { additiveIncreaseBps: 5e6 }, 72.5],
    ['Kmax times five', { kmaxBytes: 10e6 }, 607.9],
    ['both', { kmaxBytes: 10e6, additiveIncreaseBps: 10e6 }, 417.7],
  ])('%s settles at 85 and at 100 us', (_name, change, kb) => {
    for (const delayUs of [85, 100]) {
      const run = integrate(10, delayUs, { parameters: { ...DCQCN_LONG_RAMP, ...change }, ...settled });
      expectQueueKb(run, kb, kb, 0.01 * kb);
    }
  });

  it('R_AI 20 Mb/s is not enough: 85 us lies just beyond its critical delay, and the swing builds up slowly', () => {
    const parameters = { ...DCQCN_LONG_RAMP, additiveIncreaseBps: 20e6 };
    expectQueueKb(integrate(10, 85, { parameters, durationMs: 1000 }), 0, 213, 3);
  });
});

describe('the DCQCN model on the short ramp', () => {
  const parameters = DCQCN_SIGCOMM15;

  it('settles for 2 and 10 flows at 4 us', () => {
    expectQueueKb(integrate(2, 4, { parameters }), 20.2, 20.2, 0.1);
    expectQueueKb(integrate(10, 4, { parameters }), 122.6, 122.6, 0.5);
  });

  it('starves the link with ten flows at 85 us', () => {
    const run = integrate(10, 85, { parameters });
    expectQueueKb(run, 0, 234, 2);
    expect(run.utilization).toSatisfy(within(0.949, 0.005));
  });

  it('has no rest for 64 flows: the queue chatters about Kmax', () => {
    expectQueueKb(integrate(64, 4, { parameters }), 88, 239, 2);
    const far = integrate(64, 85, { parameters });
    expectQueueKb(far, 0, 444, 4);
    expect(far.utilization).toSatisfy(within(0.864, 0.005));
  });
});

describe('marking at enqueue', () => {
  it('makes two flows at 85 us swing from 0 to 39.6 KB, where egress marking settles (figure 17)', () => {
    const span = { durationMs: 200 };
    expectQueueKb(integrate(2, 85, { marking: 'enqueue', ...span }), 0.5, 39.6, 0.6);
    expectQueueKb(integrate(2, 85, { marking: 'egress', ...span }), 20.4, 20.7, 0.3);
  });

  it('makes ten flows at 50 us swing, and leaves them at rest at 4 us', () => {
    const far = integrate(10, 50, { marking: 'enqueue', durationMs: 400 });
    expect(hasSettled(far.queueBytes)).toBe(false);
    expectQueueKb(integrate(10, 4, { marking: 'enqueue' }), 125.3, 125.3, 0.5);
  });
});

describe('feedback jitter', () => {
  it('of up to 100 us leaves two DCQCN flows at rest: a late mark is still the same mark (figure 20)', () => {
    const jitter = { maxNs: 100_000, periodNs: 50_000, random: new SeededRandom(1).stream('jitter') };
    expectQueueKb(integrate(2, 4, { jitter }), 20.5, 20.5, 0.2);
  });
});

describe('convergence of unequal flows', () => {
  it('two flows at 20 Gb/s and a third after 100 ms all reach 13.3 Gb/s within another 100 ms', () => {
    const groups = [
      { count: 2, startNs: 0 },
      { count: 1, startNs: 100 * MS },
    ];
    const before = integrate(3, 4, { groups, durationMs: 99, observeMs: 5 });
    expect(before.rateBps[0].mean / 1e9).toSatisfy(within(20, 0.01));
    expect(before.rateBps[1].max).toBe(0);
    const after = integrate(3, 4, { groups, durationMs: 200, observeMs: 5 });
    for (const { mean } of after.rateBps) expect(mean / 1e9).toSatisfy(within(40 / 3, 0.01));
  });

  it('happens within the bound of the discrete model', () => {
    const groups = [30e9, 10e9].map((initialRateBps) => ({ count: 1, startNs: 0, initialRateBps }));
    const { boundNs } = dcqcnConvergence(DCQCN_LONG_RAMP, 2);
    const { rateBps } = integrate(2, 4, { groups, durationMs: boundNs / MS, observeMs: 1 });
    expect(Math.abs(rateBps[0].mean - rateBps[1].mean)).toBeLessThan((0.1 * 40e9) / 2);
  });
});

describe('DCQCN with PI marking', () => {
  const span = { durationMs: 1000, observeMs: 200 };

  it.each([2, 10, 64])('holds %i flows at the reference queue at 4 and at 85 us', (flows) => {
    for (const delayUs of [4, 85]) {
      const run = integrate(flows, delayUs, { pi: DCQCN_PI, ...span });
      expectQueueKb(run, 200, 200, 0.2);
      expect(run.rateBps[0].mean).toSatisfy(within(40e9 / flows, 0.001));
    }
  });

  it('swings with gains that are too hot, as its phase margin says', () => {
    const pi = { ...DCQCN_PI, proportionalPerByte: 5e-8, integralPerByteSecond: 5e-6 };
    for (const flows of [2, 10]) expect(hasSettled(integrate(flows, 85, { pi, ...span }).queueBytes)).toBe(false);
  });

  it('does not wind up: 64 flows recover from the overshoot of their start', () => {
    const pi = { ...DCQCN_PI, proportionalPerByte: 1e-8, integralPerByteSecond: 1e-6 };
    const run = integrate(64, 85, { pi, ...span });
    expect(run.utilization).toBe(1);
    expectQueueKb(run, 200, 200, 0.5);
  });

  it('makes an unfair start fair', () => {
    const groups = [30e9, 10e9].map((initialRateBps) => ({ count: 1, startNs: 0, initialRateBps }));
    const { rateBps } = integrate(2, 4, { groups, pi: DCQCN_PI, ...span });
    for (const { mean } of rateBps) expect(mean / 1e9).toSatisfy(within(20, 0.005));
  });
});

describe('what the model refuses', () => {
  it('no flows, broken counts, impossible times', () => {
    expect(() => integrate(0, 4)).toThrow(/flows is 0/);
    expect(() => integrate(2, 4, { groups: [] })).toThrow(/at least one flow/);
    expect(() => integrate(2, 4, { groups: [{ count: 1, startNs: -1 }] })).toThrow(/startNs of a flow group is -1/);
    expect(() => integrate(2, 4, { durationMs: 10, observeMs: 20 })).toThrow(/cannot observe/);
  });
});
