/** The published parameter sets, and what the place of coalescing does to senders and receivers of different generations. */

import { describe, expect, it } from 'vitest';
import { DCQCN_SIGCOMM15 } from '../../packages/lab/src/fluid/dcqcn-parameters.js';
import { NotificationPoint } from '../../src/dcqcn/notification-point.js';
import { DCQCN_PRESETS, type DcqcnPresetName } from '../../src/dcqcn/presets.js';
import { createRateControl, rateControlSettings } from '../../src/dcqcn/rate-controls.js';

const presetNames = Object.keys(DCQCN_PRESETS) as DcqcnPresetName[];
const settingsOf = (name: DcqcnPresetName) =>
  rateControlSettings({ name: 'dcqcn', ...DCQCN_PRESETS[name].parameters }) as Extract<
    ReturnType<typeof rateControlSettings>,
    { name: 'dcqcn' }
  >;

describe('presets', () => {
  it.each(presetNames)('%s is a complete set that says where it is from', (name) => {
    expect(() => createRateControl(settingsOf(name))).not.toThrow();
    expect(DCQCN_PRESETS[name].source).not.toBe('');
  });

  it('sigcomm15 is what the fluid model calculates with', () => {
    const settings: Record<string, unknown> = { ...settingsOf('sigcomm15') };
    const shared = Object.keys(DCQCN_SIGCOMM15).filter((key) => key in settings);
    expect(shared).toHaveLength(8);
    for (const key of shared)
      expect([key, settings[key]]).toEqual([key, DCQCN_SIGCOMM15[key as keyof typeof DCQCN_SIGCOMM15]]);
  });

  it('ns3-rdma cuts the first time by a quarter, hpcc not at all, mlx5 by a half', () => {
    const firstCut = (name: DcqcnPresetName) => {
      const control = createRateControl(settingsOf(name));
      const before = control.rateBps(0);
      control.onCnp(0);
      return 1 - control.rateBps(0) / before;
    };
    expect(firstCut('ns3-rdma')).toBeCloseTo(0.251, 3);
    expect(firstCut('hpcc')).toBe(0);
    expect(firstCut('mlx5')).toBeCloseTo(0.5, 3);
  });

  it('hpcc increases as its simulator does: one fast recovery, one additive step, then hyper steps', () => {
    const settings = { ...settingsOf('hpcc'), firstCnpRateBps: 10e9, clampTargetRate: 1 };
    const control = createRateControl(settings);
    control.onCnp(0); // The first tick cuts: R_C 5, R_T 10 Gb/s.
    const targets = [0, 1, 2, 3, 4].map((k) => control.targetRateBps(4000 + k * settings.rateTimerNs) / 1e6);
    expect(targets).toEqual([10_000, 10_000, 10_020, 10_220, 10_420]);
  });
});

describe('generations of NICs, every packet marked at 40 Gb/s for a millisecond', () => {
  const PACKET_NS = 200;
  const WINDOW_NS = 50_000;

  /** Cuts at the sender, and the rate it ends at. */
  function congested(sender: DcqcnPresetName, receiver: DcqcnPresetName) {
    const np = new NotificationPoint(settingsOf(receiver).cnpIntervalNs, false);
    const control = createRateControl(settingsOf(sender));
    let cnps = 0;
    let cuts = 0;
    for (let now = 0; now < 1e6; now += PACKET_NS) {
      if (!np.onMarked(now)) continue;
      cnps++;
      if (control.onCnp(now)) cuts++;
    }
    return { cnps, cuts, rateBps: control.rateBps(1e6) };
  }

  it.each([
    ['azure-gen1', 'azure-gen1'],
    ['azure-gen2', 'azure-gen2'],
    ['azure-gen2', 'azure-gen1'],
    ['azure-gen1', 'azure-gen2-fixed'],
    ['azure-gen2-fixed', 'azure-gen1'],
    ['azure-gen2-fixed', 'azure-gen2-fixed'],
  ] as const)('%s sending to %s cuts once in 50 us', (sender, receiver) => {
    expect(congested(sender, receiver).cuts).toBe(1e6 / WINDOW_NS);
  });

  it('azure-gen1 sending to azure-gen2 cuts at every mark and falls to the minimum', () => {
    const { cnps, cuts, rateBps } = congested('azure-gen1', 'azure-gen2');
    expect([cnps, cuts]).toEqual([1e6 / PACKET_NS, 1e6 / PACKET_NS]);
    expect(rateBps).toBe(settingsOf('azure-gen1').minimumRateBps);
  });
});
