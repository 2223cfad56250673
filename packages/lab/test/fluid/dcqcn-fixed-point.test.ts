import { describe, expect, it } from 'vitest';
import { DcqcnEvents } from '../../src/fluid/dcqcn-events.js';
import { dcqcnInPackets } from '../../src/fluid/dcqcn-parameters.js';
import {
  approximateMarkProbability,
  DCQCN_LONG_RAMP,
  DCQCN_SIGCOMM15,
  dcqcnConvergence,
  dcqcnFixedPoint,
} from '../../src/fluid/index.js';
import { within } from './closeness.js';

/** flows, p*, approximate p*, q* KB on the long ramp, q* KB on the short one (null: off it), Rt* Gb/s, alpha* */
const FIXED_POINTS = [
  [1, 3.182e-4, 3.703e-4, 11.3, 11.2, 40.294, 0.0838],
  [2, 7.77e-4, 9.247e-4, 20.5, 20.2, 20.218, 0.1014],
  [4, 1.888e-3, 2.32e-3, 42.7, 41.8, 10.16, 0.1218],
  [8, 4.552e-3, 5.832e-3, 95.8, 93.8, 5.115, 0.1452],
  [10, 6.032e-3, 7.849e-3, 125.3, 122.6, 4.103, 0.1533],
  [16, 1.087e-2, 1.468e-2, 221.9, null, 2.582, 0.1713],
  [20, 1.435e-2, 1.976e-2, 291.3, null, 2.073, 0.1803],
  [32, 2.562e-2, 3.696e-2, 516.1, null, 1.307, 0.1999],
  [64, 5.905e-2, 9.312e-2, 1183.1, null, 0.664, 0.2301],
  [100, 9.921e-2, 1.688e-1, 1984.3, null, 0.431, 0.2497],
] as const;

describe('the fixed point of DCQCN', () => {
  it.each(FIXED_POINTS)(
    'of %i flows is the derived one to 0.5 %%',
    (flows, p, approximateP, longKb, shortKb, rt, alpha) => {
      const point = dcqcnFixedPoint(DCQCN_LONG_RAMP, flows);
      expect(point.markProbability).toSatisfy(within(p, 0.005));
      expect(point.queueBytes).toSatisfy(within(longKb * 1e3, 0.005));
      expect(point.targetRateBps).toSatisfy(within(rt * 1e9, 0.005));
      expect(point.alpha).toSatisfy(within(alpha, 0.005));
      expect(point.rateBps).toBe(40e9 / flows);
      expect(approximateMarkProbability(dcqcnInPackets(DCQCN_LONG_RAMP), flows)).toSatisfy(within(approximateP, 0.005));
      const short = dcqcnFixedPoint(DCQCN_SIGCOMM15, flows).queueBytes;
      if (shortKb === null) expect(short).toBeNull();
      else expect(short).toSatisfy(within(shortKb * 1e3, 0.005));
    },
  );

  it.each([
    [2, 20.1],
    [10, 125.1],
    [64, 1178],
  ])('of %i flows lies where the published figure 4 settles, within the 2 %% it can be read to', (flows, kb) => {
    expect(dcqcnFixedPoint(DCQCN_LONG_RAMP, flows).queueBytes).toSatisfy(within(kb * 1e3, 0.02));
  });

  it('refuses parameters that describe no algorithm', () => {
    expect(() => dcqcnFixedPoint({ ...DCQCN_SIGCOMM15, kmaxBytes: 5_000 }, 2)).toThrow(/kmaxBytes/);
    expect(() => dcqcnFixedPoint({ ...DCQCN_SIGCOMM15, gain: 0 }, 2)).toThrow(/gain/);
    expect(() => dcqcnFixedPoint({ ...DCQCN_SIGCOMM15, pmax: 1.5 }, 2)).toThrow(/pmax/);
    expect(() => dcqcnFixedPoint(DCQCN_SIGCOMM15, 0)).toThrow(/flows/);
  });
});

describe('the event rates of DCQCN', () => {
  const parameters = dcqcnInPackets(DCQCN_SIGCOMM15);
  const at = (p: number, rate: number): DcqcnEvents => {
    const events = new DcqcnEvents(parameters);
    events.update(p, rate);
    return events;
  };

  it('are those of the published terms where these are defined', () => {
    const [p, rate] = [0.01, 5e5];
    const { byteCounter: B, rateTimer: T, cnpInterval: tau, fastRecoveryStages: F } = parameters;
    const b = p / ((1 - p) ** -B - 1);
    const d = p / ((1 - p) ** (-T * rate) - 1);
    const events = at(p, rate);
    expect(events.cutProbability).toSatisfy(within(1 - (1 - p) ** (tau * rate), 1e-9));
    expect(events.recoveries).toSatisfy(within(rate * (b + d), 1e-9));
    const c = b * (1 - p) ** (F * B);
    const e = d * (1 - p) ** (F * T * rate);
    expect(events.additiveIncreases).toSatisfy(within(rate * (c + e), 1e-9));
  });

  it('without marks are the plain periods of byte counter and timer', () => {
    const events = at(0, 5e5);
    expect(events.cutProbability).toBe(0);
    expect(events.recoveries).toSatisfy(within(5e5 / 1e4 + 1 / 55e-6, 1e-12));
    expect(events.additiveIncreases).toBe(events.recoveries);
  });

  it('with every packet marked are a sure cut and no recovery', () => {
    const events = at(1, 5e5);
    expect(events.cutProbability).toBe(1);
    expect(events.recoveries).toBe(0);
  });

  it('stay numbers at every corner', () => {
    for (const p of [0, 1e-300, 1e-12, 0.5, 1 - 1e-16, 1]) {
      for (const rate of [0, 1e-9, 1, 5e6]) {
        for (const value of Object.values(at(p, rate))) expect(value).toSatisfy(Number.isFinite);
      }
    }
  });
});

describe('the discrete convergence model', () => {
  it.each([
    // flows, alpha*, cycle, bound in ms: defaults, R_AI 10 Mb/s, Kmax 1000 KB
    [2, 0.057, 17.0, 96.9, 358.2, 102.7],
    [4, 0.0782, 12.5, 63.6, 227.9, 68.7],
    [10, 0.1162, 8.5, 35.9, 121.4, 40.1],
    [20, 0.1534, 6.5, 23.6, 74.9, 27.1],
    [100, 0.2643, 3.8, 10.1, 25.9, 12.4],
  ])('of %i flows has the published cycle and bounds', (flows, alpha, cycle, boundMs, slowMs, wideMs) => {
    const { alpha: foundAlpha, cycleIntervals, boundNs } = dcqcnConvergence(DCQCN_SIGCOMM15, flows);
    expect(foundAlpha).toBeCloseTo(alpha, 4);
    expect(cycleIntervals).toSatisfy(within(cycle, 0.01));
    expect(boundNs).toSatisfy(within(boundMs * 1e6, 0.005));
    const slow = dcqcnConvergence({ ...DCQCN_SIGCOMM15, additiveIncreaseBps: 10e6 }, flows);
    expect(slow.boundNs).toSatisfy(within(slowMs * 1e6, 0.005));
    expect(dcqcnConvergence({ ...DCQCN_SIGCOMM15, kmaxBytes: 1e6 }, flows).boundNs).toSatisfy(
      within(wideMs * 1e6, 0.005),
    );
  });
});
