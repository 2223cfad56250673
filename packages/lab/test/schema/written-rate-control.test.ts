import { describe, expect, it } from 'vitest';
import { DCQCN_PRESETS } from '../../../../src/dcqcn/presets.js';
import { readRateControl } from '../../../command/src/schema/written-rate-control.js';
import { rateControlOf } from '../../../command/src/transfer/rate-control.js';

describe('--cc, --rate and --cc-params', () => {
  it('a rate without rate control is a fixed rate', () => {
    expect(rateControlOf({ cc: 'none' })).toEqual({ name: 'none' });
    expect(rateControlOf({ cc: 'none', rate: 1e9 })).toEqual({ name: 'fixed', rateBps: 1e9 });
  });

  it('a rate beside a rate control is its line rate', () => {
    expect(rateControlOf({ cc: 'timely', rate: 1e9 })).toEqual({ name: 'timely', linkRateBps: 1e9 });
  });

  it('parameters have the units that their names end in', () => {
    const ccParams = 'alphaIntervalNs=10us, minimumRateBps=5Mbps,burstBytes=16KB,gain=0.01,clampTargetRate=0';
    expect(rateControlOf({ cc: 'dcqcn', ccParams })).toEqual({
      name: 'dcqcn',
      alphaIntervalNs: 10_000,
      minimumRateBps: 5e6,
      burstBytes: 16_000,
      gain: 0.01,
      clampTargetRate: 0,
    });
  });

  it('a preset comes before single parameters, and before the line rate', () => {
    expect(rateControlOf({ cc: 'dcqcn', rate: 25e9, ccParams: 'gain=0.5,preset=mlx5' })).toEqual({
      name: 'dcqcn',
      ...DCQCN_PRESETS.mlx5.parameters,
      linkRateBps: 25e9,
      gain: 0.5,
    });
  });

  it.each([
    [{ cc: 'dcqcn', ccParams: 'gain' }, /'gain' is not parameter=value/],
    [{ cc: 'dcqcn', ccParams: 'gain=1=2' }, /is not parameter=value/],
    [{ cc: 'dcqcn', ccParams: 'gain=much' }, /gain is not a number/],
    [{ cc: 'dcqcn', ccParams: 'gain=2' }, /gain is 2 \(it must be from 0 to 1\)/],
    [{ cc: 'dcqcn', ccParams: 'rateTimerNs=55' }, /'55' is not a time/],
    [
      { cc: 'dcqcn', ccParams: 'preset=mlx6' },
      /no preset mlx6 of dcqcn \(did you mean 'mlx5'\? There are sigcomm15,.*mlx5/,
    ],
    [{ cc: 'timely', ccParams: 'preset=mlx5' }, /no preset mlx5 of timely/],
    [
      { cc: 'timely', ccParams: 'rateTimerNs=55us' },
      /no rate control parameter rateTimerNs here \(there are linkRateBps,/,
    ],
    [{ cc: 'none', ccParams: 'rateBps=1Gbps' }, /no rate control parameter rateBps/],
  ] as const)('%# what cannot be is refused with what can', (flags, message) => {
    expect(() => rateControlOf(flags)).toThrow(message);
  });

  it('numbers may be numbers, but nothing else', () => {
    expect(readRateControl('fixed', { rateBps: 1e9 })).toEqual({ name: 'fixed', rateBps: 1e9 });
    expect(() => readRateControl('fixed', { rateBps: [1e9] })).toThrow(/rateBps is not a number/);
    expect(() => readRateControl('dcqcn', { gain: '' })).toThrow(/gain is not a number/);
  });
});
