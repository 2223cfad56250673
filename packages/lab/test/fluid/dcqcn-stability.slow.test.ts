import { describe, expect, it } from 'vitest';
import {
  authorsDcqcnLoop,
  criticalDelayNs,
  DCQCN_LONG_RAMP,
  DCQCN_PI,
  DCQCN_SIGCOMM15,
  type DcqcnParameters,
  exactDcqcnLoop,
  type OpenLoop,
  phaseMargin,
} from '../../src/fluid/index.js';
import { within } from './closeness.js';

const FLOWS = [2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 50, 64, 80, 100];
const SLOW: DcqcnParameters = { ...DCQCN_SIGCOMM15, additiveIncreaseBps: 10e6 };
const WIDE: DcqcnParameters = { ...DCQCN_SIGCOMM15, kmaxBytes: 1e6 };
const BOTH: DcqcnParameters = { ...SLOW, kmaxBytes: 1e6 };

/** Delay in us, then degrees for each of FLOWS. */
const AUTHORS_MARGINS: readonly (readonly [number, readonly number[]])[] = [
  [0, [26.6, 13.4, 7.7, 5.4, 4.8, 5.0, 6.8, 9.6, 13.0, 20.3, 27.4, 35.1, 43.5, 50.3, 56.5]],
  [1, [26.2, 13.1, 7.4, 5.2, 4.5, 4.7, 6.6, 9.4, 12.8, 20.0, 27.1, 34.9, 43.2, 50.0, 56.1]],
  [4, [25.1, 12.3, 6.7, 4.4, 3.8, 4.0, 5.9, 8.8, 12.1, 19.4, 26.4, 34.1, 42.4, 49.1, 55.1]],
  [10, [22.9, 10.6, 5.2, 3.0, 2.4, 2.7, 4.6, 7.5, 10.9, 18.1, 25.0, 32.6, 40.7, 47.2, 53.1]],
  [25, [17.4, 6.3, 1.4, -0.5, -1.0, -0.6, 1.4, 4.3, 7.7, 14.7, 21.5, 28.8, 36.5, 42.7, 48.1]],
  [50, [8.2, -0.8, -4.9, -6.4, -6.6, -6.1, -3.9, -1.0, 2.4, 9.2, 15.7, 22.5, 29.6, 35.0, 39.8]],
  [85, [-4.6, -10.7, -13.8, -14.7, -14.6, -13.8, -11.4, -8.4, -5.1, 1.5, 7.6, 13.7, 19.8, 24.3, 28.1]],
  [100, [-10.1, -14.9, -17.6, -18.3, -18.0, -17.1, -14.6, -11.5, -8.3, -1.8, 4.1, 10.0, 15.6, 19.7, 23.1]],
];

const EXACT_MARGINS: readonly (readonly [number, readonly number[]])[] = [
  [1, [20.1, 13.5, 10.8, 9.6, 9.1, 9.0, 9.4, 10.2, 11.3, 13.8, 16.4, 19.7, 24.3, 29.2, 34.8]],
  [4, [19.4, 12.9, 10.3, 9.1, 8.7, 8.6, 9.0, 9.9, 11.0, 13.5, 16.1, 19.5, 24.0, 29.0, 34.6]],
  [10, [18.0, 11.8, 9.3, 8.2, 7.8, 7.7, 8.2, 9.1, 10.3, 12.8, 15.5, 18.9, 23.6, 28.5, 34.2]],
  [25, [14.4, 8.9, 6.8, 5.9, 5.6, 5.6, 6.3, 7.3, 8.5, 11.2, 14.0, 17.5, 22.3, 27.4, 33.3]],
  [50, [8.5, 4.2, 2.5, 1.9, 1.9, 2.1, 3.0, 4.2, 5.6, 8.5, 11.5, 15.2, 20.2, 25.5, 31.6]],
  [85, [0.1, -2.5, -3.5, -3.6, -3.4, -2.9, -1.7, -0.2, 1.4, 4.7, 7.9, 11.8, 17.1, 22.7, 29.2]],
  [100, [-3.5, -5.4, -6.1, -6.0, -5.6, -5.1, -3.7, -2.1, -0.4, 3.0, 6.3, 10.4, 15.8, 21.5, 28.1]],
];

function margin(loop: OpenLoop): number {
  return phaseMargin(loop)!.degrees;
}

describe('the phase margin of DCQCN', () => {
  it.each(AUTHORS_MARGINS)("by the authors' linearisation at %i us is the published one", (delayUs, expected) => {
    const found = FLOWS.map((flows) => margin(authorsDcqcnLoop(DCQCN_SIGCOMM15, flows, delayUs * 1e-6)));
    found.forEach((degrees, i) => {
      expect(Math.abs(degrees - expected[i]), `${FLOWS[i]} flows: ${degrees}`).toBeLessThan(0.1);
    });
  });

  it.each(EXACT_MARGINS)('by the exact linearisation at %i us is the derived one', (delayUs, expected) => {
    const found = FLOWS.map((flows) => margin(exactDcqcnLoop(DCQCN_SIGCOMM15, flows, delayUs * 1e-6)));
    found.forEach((degrees, i) => {
      expect(Math.abs(degrees - expected[i]), `${FLOWS[i]} flows: ${degrees}`).toBeLessThan(0.1);
    });
  });

  it('of ten flows at 0, 50 and 100 us is the stored value of figure 3(a) to 0.05 degrees', () => {
    const found = [0, 50, 100].map((us) => margin(authorsDcqcnLoop(DCQCN_SIGCOMM15, 10, us * 1e-6)));
    [4.76, -6.58, -17.93].forEach((expected, i) => {
      expect(Math.abs(found[i] - expected)).toBeLessThan(0.05);
    });
  });

  it.each([
    // flows, then authors / exact for R_AI 10 Mb/s, Kmax 1000 KB, both
    [2, 19.9, 11.3, 12.1, 2.1, 44.2, 7.5],
    [10, 4.2, 1.1, 5.5, 5.2, 43.9, 3.4],
    [16, -1.6, 0.3, 14.6, 10.9, 16.3, 5.4],
    [20, -2.5, 0.5, 19.0, 14.7, 19.2, 7.1],
    [24, -2.4, 0.9, 22.0, 18.5, 21.9, 8.8],
    [64, 10.5, 8.0, 29.1, 49.7, 30.0, 27.1],
  ])('of %i flows at 100 us with each remedy is the derived one', (flows, ...expected) => {
    const found = [SLOW, WIDE, BOTH].flatMap((parameters) => [
      margin(authorsDcqcnLoop(parameters, flows, 1e-4)),
      margin(exactDcqcnLoop(parameters, flows, 1e-4)),
    ]);
    found.forEach((degrees, i) => {
      expect(Math.abs(degrees - expected[i]), `column ${i}: ${degrees}`).toBeLessThan(0.1);
    });
  });

  it.each([
    ['3(b) at 50 us', SLOW, 50, 22, 4.25],
    ['3(b) at 100 us', SLOW, 100, 22, -2.56],
    ['3(c) at 100 us', BOTH, 100, 14, 15.5],
  ] as const)('has the published minimum of figure %s', (_figure, parameters, delayUs, flows, expected) => {
    const curve = Array.from({ length: 50 }, (_, i) => margin(authorsDcqcnLoop(parameters, 2 * i + 2, delayUs * 1e-6)));
    const least = Math.min(...curve);
    expect(2 * curve.indexOf(least) + 2).toBe(flows);
    expect(Math.abs(least - expected)).toBeLessThan(0.1);
  });

  it.each([
    [0, 2, 23.9],
    [0, 38, -0.37],
    [0, 100, 10.8],
    [50, 2, -16.7],
    [50, 6, -8.0],
    [50, 32, -16.6],
    [50, 100, -3.8],
    [100, 2, -57],
    [100, 100, -18],
  ])('at 100 Gb/s, %i us and %i flows is the stored one', (delayUs, flows, expected) => {
    const fast = { ...DCQCN_SIGCOMM15, linkRateBps: 100e9 };
    const degrees = margin(authorsDcqcnLoop(fast, flows, delayUs * 1e-6));
    // The 100 us row is only known to whole degrees.
    expect(Math.abs(degrees - expected)).toBeLessThan(delayUs === 100 ? 0.5 : 0.1);
  });

  it('is not monotone in the number of flows: both linearisations dip near ten', () => {
    for (const loop of [authorsDcqcnLoop, exactDcqcnLoop]) {
      const [few, ten, many] = [2, 10, 64].map((flows) => margin(loop(DCQCN_SIGCOMM15, flows, 4e-6)));
      expect(ten).toBeLessThan(few);
      expect(ten).toBeLessThan(many);
    }
  });

  it('explains figure 4 by the exact linearisation only: 85 us is stable for 2 and 64 flows, not for 10', () => {
    const signs = (loop: typeof exactDcqcnLoop): number[] =>
      [2, 10, 64].map((flows) => Math.sign(margin(loop(DCQCN_LONG_RAMP, flows, 85e-6))));
    expect(signs(exactDcqcnLoop)).toEqual([1, -1, 1]);
    expect(signs(authorsDcqcnLoop)).toEqual([-1, -1, 1]);
  });

  it('under PI marking is positive for the chosen gains and negative for hot ones', () => {
    const hot = { ...DCQCN_PI, proportionalPerByte: 5e-8, integralPerByteSecond: 5e-6 };
    for (const flows of [2, 10, 64]) {
      for (const delay of [4e-6, 85e-6]) {
        expect(margin(exactDcqcnLoop(DCQCN_LONG_RAMP, flows, delay, DCQCN_PI))).toBeGreaterThan(0);
      }
    }
    expect(margin(exactDcqcnLoop(DCQCN_LONG_RAMP, 2, 85e-6, hot))).toBeLessThan(0);
    expect(margin(exactDcqcnLoop(DCQCN_LONG_RAMP, 10, 85e-6, hot))).toBeLessThan(0);
  });
});

describe('the critical delay of DCQCN', () => {
  const COLUMNS = [2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 50, 64, 100];
  const above400 = Number.POSITIVE_INFINITY;

  it.each<[string, DcqcnParameters, number[]]>([
    ['defaults', DCQCN_SIGCOMM15, [85.6, 71.7, 64.7, 62.2, 62.5, 64.7, 72.6, 83.7, 96.6, 126, 158, 199, 257, 393]],
    ['R_AI 10 Mb/s', SLOW, [168, 144, 127, 117, 110, 106, 104, 106, 111, 126, 146, 174, 217, 335]],
    ['Kmax 1000 KB', WIDE, [121, 113, 127, 150, 179, 212, 283, 359, above400]],
    ['both', BOTH, [214, 171, 160, 164, 175, 191, 232, 281, 336, above400]],
  ])('with %s is the derived one to 1 %%', (_name, parameters, expected) => {
    expected.forEach((us, i) => {
      const found = criticalDelayNs((delay) => exactDcqcnLoop(parameters, COLUMNS[i], delay))! / 1e3;
      if (us === above400) expect(found).toBeGreaterThan(400);
      else expect(found, `${COLUMNS[i]} flows`).toSatisfy(within(us, 0.01));
    });
  });

  it("by the authors' linearisation is the published one to 1 %", () => {
    [72.4, 47.3, 30.5, 22.8, 20.8, 22.4, 31.7, 45.5, 61.1, 92.0, 118, undefined, 156].forEach((us, i) => {
      if (us === undefined) return;
      const found = criticalDelayNs((delay) => authorsDcqcnLoop(DCQCN_SIGCOMM15, COLUMNS[i], delay))! / 1e3;
      expect(found, `${COLUMNS[i]} flows`).toSatisfy(within(us, 0.01));
    });
  });

  it('is where the margin is zero', () => {
    const critical = criticalDelayNs((delay) => exactDcqcnLoop(DCQCN_LONG_RAMP, 10, delay))!;
    expect(Math.abs(margin(exactDcqcnLoop(DCQCN_LONG_RAMP, 10, critical * 1e-9)))).toBeLessThan(1e-3);
  });
});
