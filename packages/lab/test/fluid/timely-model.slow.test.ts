import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../../src/core/random.js';
import {
  type FlowGroup,
  type FluidRun,
  HostPiLaw,
  hasSettled,
  OriginalTimelyLaw,
  PATCHED_TIMELY_CONEXT16,
  PATCHED_TIMELY_PI_CONEXT16,
  PatchedTimelyLaw,
  patchedTimelyConvergenceBoundNs,
  patchedTimelyFixedPoint,
  patchedTimelyLoop,
  phaseMargin,
  publishedHostPi,
  simulate,
  TIMELY_SIGCOMM15,
  TimelyModel,
  type TimelyModelOptions,
  togetherAtStart,
} from '../../src/fluid/index.js';
import { between, within } from './closeness.js';

const MS = 1e6;

function starting(...gbps: readonly number[]): FlowGroup[] {
  return gbps.map((rate) => ({ count: 1, startNs: 0, initialRateBps: rate * 1e9 }));
}

function secondLate([first, second]: readonly FlowGroup[]): FlowGroup[] {
  return [first, { ...second, startNs: 10 * MS }];
}

function integrate(
  options: Omit<TimelyModelOptions, 'delayNs'> & { delayNs?: number },
  durationMs: number,
  observeMs: number,
): FluidRun {
  const model = new TimelyModel({ delayNs: 4000, ...options });
  return simulate(model, { durationNs: durationMs * MS, observeNs: observeMs * MS });
}

function timely(groups: readonly FlowGroup[], parameters = TIMELY_SIGCOMM15): FluidRun {
  return integrate({ parameters, law: new OriginalTimelyLaw(parameters), groups }, 300, 100);
}

function patched(
  groups: readonly FlowGroup[],
  changes: Partial<typeof PATCHED_TIMELY_CONEXT16> = {},
  [durationMs, observeMs] = [300, 100],
): FluidRun {
  const parameters = { ...PATCHED_TIMELY_CONEXT16, ...changes };
  return integrate({ parameters, law: new PatchedTimelyLaw(parameters), groups }, durationMs, observeMs);
}

function gbpsOf({ rateBps }: FluidRun): number[] {
  return rateBps.map(({ mean }) => mean / 1e9);
}

describe('TIMELY in time', () => {
  it.each([
    ['5/5', starting(5, 5), 4.7, 4.7],
    ['5/5 with the second 10 ms late', secondLate(starting(5, 5)), 5.11, 4.3],
    ['7/3', starting(7, 3), 6.35, 3.07],
    ['6/4', starting(6, 4), 5.55, 3.86],
    ['9/1', starting(9, 1), 7.7, 1.74],
  ])('from %s ends with shares of its own', (_start, groups, first, second) => {
    const [a, b] = gbpsOf(timely(groups));
    expect(a).toSatisfy(within(first, 0.005));
    expect(b).toSatisfy(within(second, 0.01));
  });

  it('from 7/3 with 16 KB segments stays more unfair', () => {
    const [a, b] = gbpsOf(timely(starting(7, 3), { ...TIMELY_SIGCOMM15, segmentBytes: 16_000 }));
    expect(a).toSatisfy(within(7.4, 0.005));
    expect(b).toSatisfy(within(1.93, 0.01));
  });

  it('never settles: the queue saws between 0 and about C Tlow, and the link loses some 6 %', () => {
    const run = timely(starting(5, 5));
    expect(run.queueBytes.min).toBe(0);
    expect(run.queueBytes.max / 1e3).toSatisfy(between(62.5, 68));
    expect(run.utilization).toSatisfy(between(0.93, 0.95));
  });
});

describe('patched TIMELY in time', () => {
  it.each([2, 4, 10, 18])('of %i flows settles at its fixed point', (flows) => {
    const { queueBytes } = patched(togetherAtStart(flows));
    const rest = patchedTimelyFixedPoint(PATCHED_TIMELY_CONEXT16, flows).queueBytes;
    expect(queueBytes.min).toSatisfy(within(rest, 0.005));
    expect(queueBytes.max).toSatisfy(within(rest, 0.005));
  });

  it.each([
    [20, 195, 220],
    [30, 239, 297],
    [40, 275, 374],
    [50, 303, 450],
    [64, 329, 557],
  ])('of %i flows swings between %i and %i KB', (flows, low, high) => {
    const { queueBytes } = patched(togetherAtStart(flows));
    expect(queueBytes.min / 1e3).toSatisfy(between(low - 1.5, low + 1.5));
    expect(queueBytes.max / 1e3).toSatisfy(between(high - 1.5, high + 1.5));
  });

  it.each([
    [36, 343.75, 343.75],
    [40, 335, 387],
    [44, 305, 409],
    [50, 315, 453],
  ])('with a weight slope of 1/2, %i flows stay between %d and %d KB', (flows, low, high) => {
    const { queueBytes } = patched(togetherAtStart(flows), { weightSlope: 0.5 });
    expect(queueBytes.min / 1e3).toSatisfy(between(low - 2, low + 2));
    expect(queueBytes.max / 1e3).toSatisfy(between(high - 2, high + 2));
  });

  it.each([
    ['7/3', starting(7, 3)],
    ['9/1', starting(9, 1)],
    ['5/5 with the second late', secondLate(starting(5, 5))],
  ])('heals the unfair start %s within 200 ms', (_start, groups) => {
    for (const rate of gbpsOf(patched(groups, {}, [200, 10]))) expect(rate).toSatisfy(within(5, 0.002));
  });

  it('shrinks the difference of two flows as fast as the published bound says', () => {
    const boundMs = patchedTimelyConvergenceBoundNs(PATCHED_TIMELY_CONEXT16, 2) / MS;
    expect(boundMs).toSatisfy(within(76.7, 0.001));
    const [a, b] = gbpsOf(patched(starting(7, 3), {}, [boundMs, 0.1]));
    expect(a - b).toBeLessThan(0.1 * 5);
  });

  it('still is unfair after 20 ms', () => {
    const [a, b] = gbpsOf(patched(starting(7, 3), {}, [20, 5]));
    expect(a).toSatisfy(within(5.97, 0.005));
    expect(b).toSatisfy(within(3.99, 0.005));
  });

  it('does not survive feedback jitter of 100 us: noise on the delay is noise on the signal', () => {
    const parameters = PATCHED_TIMELY_CONEXT16;
    const jitter = { maxNs: 100_000, periodNs: 50_000, random: new SeededRandom(1).stream('jitter') };
    const run = integrate(
      { parameters, law: new PatchedTimelyLaw(parameters), groups: togetherAtStart(2), jitter },
      300,
      100,
    );
    expect(run.utilization).toBeLessThan(0.9);
    expect(patched(togetherAtStart(2)).utilization).toBe(1);
  });
});

describe('the fixed point and phase margin of patched TIMELY', () => {
  it.each([
    [2, 78.1],
    [4, 93.8],
    [10, 140.6],
    [20, 218.8],
    [40, 375.0],
    [64, 562.5],
  ])('of %i flows is %d KB', (flows, kb) => {
    const point = patchedTimelyFixedPoint(PATCHED_TIMELY_CONEXT16, flows);
    expect(point.queueBytes / 1e3).toSatisfy(within(kb, 0.001));
    expect(point.rateBps).toBe(10e9 / flows);
  });

  const FLOWS = [2, 4, 10, 20, 30, 36, 38, 40, 44, 50];

  it.each([
    [0, 0.5, [-1.9, 5.2, 28.5, 41.6, 22.1, 7.8, 3.2, -1.3, -10.0, -22.3]],
    [50, 0.5, [-7.0, 1.6, 25.9, 38.5, 18.1, 3.6, -1.1, -5.7, -14.5, -26.9]],
    [100, 0.5, [-12.1, -2.0, 23.3, 35.3, 14.1, -0.7, -5.5, -10.1, -19.1, -31.5]],
    [4, 2, [7.0, 28.7, 45.3, -4.8, -45.8, -65.8, -71.8, -77.7, -88.8, -104]],
  ])('at %i us with slope %d is the published or derived one', (delayUs, weightSlope, expected) => {
    const parameters = { ...PATCHED_TIMELY_CONEXT16, weightSlope };
    FLOWS.forEach((flows, i) => {
      const { degrees } = phaseMargin(patchedTimelyLoop(parameters, flows, delayUs * 1e-6))!;
      expect(Math.abs(degrees - expected[i]), `${flows} flows: ${degrees}`).toBeLessThan(0.1);
    });
  });

  it('has the sign of what the model does', () => {
    for (const flows of [10, 18, 20, 30]) {
      const { degrees } = phaseMargin(patchedTimelyLoop(PATCHED_TIMELY_CONEXT16, flows, 4e-6))!;
      expect(hasSettled(patched(togetherAtStart(flows)).queueBytes), `${flows} flows`).toBe(degrees > 0);
    }
  });
});

describe('PI control from end-to-end delay', () => {
  const parameters = PATCHED_TIMELY_PI_CONEXT16;
  const gains = publishedHostPi(parameters);
  const held = (groups: readonly FlowGroup[], scope: 'per-flow' | 'shared', seconds: number): FluidRun =>
    integrate(
      { parameters, law: new HostPiLaw(parameters, gains, scope, groups.length), groups },
      seconds * 1000,
      seconds * 100,
    );

  it('has the published reference, half way between the thresholds', () => {
    expect(gains.referenceBytes).toBeCloseTo(343_750, 6);
  });

  it('by a signal of its own for every flow pins the queue but not the shares', () => {
    const run = held(starting(7, 3), 'per-flow', 3);
    expect(run.queueBytes.mean / 1e3).toSatisfy(within(343.75, 0.002));
    expect(hasSettled(run.queueBytes)).toBe(true);
    const [a, b] = gbpsOf(run);
    expect(a / b).toBeGreaterThan(1.3);
    expect(a + b).toSatisfy(within(10, 0.001));
  });

  it('by one signal for all, as a switch gives, pins the queue and makes the shares equal', () => {
    const run = held(starting(7, 3), 'shared', 3);
    expect(run.queueBytes.mean / 1e3).toSatisfy(within(343.75, 0.002));
    for (const rate of gbpsOf(run)) expect(rate).toSatisfy(within(5, 0.001));
  });

  it('leaves ten flows as unequal as their start, in the same order', () => {
    const start = starting(...Array.from({ length: 10 }, (_, k) => ((k + 1) * 10) / 55));
    const rates = gbpsOf(held(start, 'per-flow', 3));
    for (let i = 1; i < rates.length; i++) expect(rates[i]).toBeGreaterThan(rates[i - 1]);
    // Published: 0.39 to 1.45 Gb/s.
    expect(rates[0]).toSatisfy(between(0.3, 0.45));
    expect(rates[9]).toSatisfy(between(1.3, 1.6));
  });
});
