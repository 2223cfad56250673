/** TIMELY and patched TIMELY against steps worked out by hand; rates in Gb/s, times in us. */

import { describe, expect, it } from 'vitest';
import { createRateControl, type RateControlOptions, rateControlSettings } from '../../src/dcqcn/rate-controls.js';

const US = 1000;
/** D_minRTT: samples this far apart count whole. */
const APART = 20;

/** The rate after each sample, given as RTT; `apart` is the time between them. */
function rates(options: RateControlOptions, rttsUs: readonly number[], apart = APART): number[] {
  const control = createRateControl(
    rateControlSettings({ linkRateBps: 10e9, initialRateBps: 1e9, ...options } as never),
  );
  return rttsUs.map((rttUs, i) => {
    const now = (i + 1) * apart * US;
    control.onRttSample(rttUs * US, now);
    return control.rateBps(now) / 1e9;
  });
}

function expectRates(
  options: RateControlOptions,
  rttsUs: readonly number[],
  expected: readonly number[],
  apart?: number,
) {
  const actual = rates(options, rttsUs, apart);
  expect(actual).toHaveLength(expected.length);
  actual.forEach((rate, i) => {
    expect(rate, `sample ${i}`).toBeCloseTo(expected[i], 9);
  });
}

describe('TIMELY', () => {
  const TIMELY = { name: 'timely' } as const;

  it('begins at the line rate unless told otherwise', () => {
    expect(createRateControl(rateControlSettings(TIMELY)).rateBps(0)).toBe(10e9);
  });

  it('below Tlow always adds delta, however fast the RTT rises', () => {
    expectRates(TIMELY, [10, 49], [1.01, 1.02]);
  });

  it('above Thigh always falls by beta (1 - Thigh/RTT), however fast the RTT sinks', () => {
    expectRates(TIMELY, [1000, 600], [0.6, 0.6 * (1 - 0.8 * (1 - 500 / 600))]);
  });

  it('between them falls by beta times the smoothed gradient when the RTT rises', () => {
    // 100 to 110 us: rttDiff = 0.875 x 10 us, gradient 0.4375. Then flat: rttDiff = 0.125 x 8.75 us, gradient 0.0546875.
    const second = 1.01 * (1 - 0.8 * 0.4375);
    expectRates(TIMELY, [100, 110, 110], [1.01, second, second * (1 - 0.8 * 0.0546875)]);
  });

  it('between them adds delta when it does not rise, and five times as much from the fifth time on', () => {
    expectRates(TIMELY, [100, 100, 99, 99, 98, 98], [1.01, 1.02, 1.03, 1.04, 1.09, 1.14]);
  });

  it('moves by a part of a step for samples that come early, and by whole steps without proportionalSteps', () => {
    expectRates(TIMELY, [10, 10, 10], [1.01, 1.015, 1.02], APART / 2);
    expectRates({ ...TIMELY, proportionalSteps: 0 }, [10, 10, 10], [1.01, 1.02, 1.03], APART / 2);
  });

  it('begins counting anew after a rise, and after a sample outside of the thresholds', () => {
    expect(rates(TIMELY, [100, 100, 100, 100, 40, 40]).at(-1)).toBeCloseTo(1.06, 9);
    const afterRise = rates(TIMELY, [100, 100, 100, 100, 101, 60, 60]);
    expect(afterRise[6] - afterRise[5]).toBeCloseTo(0.01, 9);
  });

  it('moves by a part of the step when samples come closer than D_minRTT', () => {
    expectRates(TIMELY, [40, 40, 40], [1.01, 1.0125, 1.015], APART / 4);
  });

  it('a notification changes nothing', () => {
    const control = createRateControl(rateControlSettings(TIMELY));
    expect(control.onCnp(0)).toBe(false);
    expect(control.rateBps(0)).toBe(10e9);
  });
});

describe('patched TIMELY', () => {
  const PATCHED = { name: 'patched-timely' } as const;

  it('weighs the absolute error and the increase equally when the RTT is flat', () => {
    // error (100 - 50)/50 = 1: half of delta up, half of beta R down.
    expectRates(PATCHED, [100], [1 + 0.005 - 0.004]);
  });

  it('only increases when the RTT sinks by a quarter of D_minRTT, only decreases when it rises so much', () => {
    const [first] = rates(PATCHED, [100]);
    expectRates(PATCHED, [100, 90], [first, first + 0.01]);
    expectRates(PATCHED, [100, 110], [first, first * (1 - 0.008 * 1.2)]);
  });

  it('rests at its fixed point: RTT_ref (1 + delta / (beta R))', () => {
    expectRates({ ...PATCHED, initialRateBps: 5e9 }, [62.5, 62.5, 62.5], [5, 5, 5]);
  });

  it('has the slope of the published phase margins on demand', () => {
    // Gradient 0.4375: weight 1/2 x 0.4375 + 1/2.
    const [first] = rates(PATCHED, [100]);
    const weight = 0.5 * 0.4375 + 0.5;
    expectRates(
      { ...PATCHED, weightSlope: 0.5 },
      [100, 110],
      [first, first + 0.01 * (1 - weight) - first * 0.008 * weight * 1.2],
    );
  });
});

describe('parameters that contradict each other', () => {
  it.each([{ lowRttNs: 500_000 }, { minimumRateBps: 11e9 }])('are refused: %o', (changes) => {
    expect(() => createRateControl(rateControlSettings({ name: 'timely', ...changes }))).toThrow(
      expect.objectContaining({ code: 'ERR_ROCE_CONFLICT' }),
    );
  });
});
