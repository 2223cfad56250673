import { describe, expect, test } from 'vitest';
import { loadScenario } from '../../../src/commands/sim/load.js';
import { like, ORIGINALS, type Original } from '../../../src/sim/scenario/like.js';
import { parseScenario, type ScenarioFile } from '../../../src/sim/scenario/schema.js';

const STAR: ScenarioFile = {
  name: 'star',
  duration: '1ms',
  topology: { kind: 'star', hosts: 3, rate: '25Gbps' },
  nic: { cc: 'dcqcn' },
  flows: [{ kind: 'flows', from: 'h0..h1', to: 'h2' }],
};

function settings(original: Original, changes: Partial<ScenarioFile> = {}) {
  return parseScenario(like({ ...STAR, ...changes }, original));
}

describe('the settings of an original', () => {
  test.each(ORIGINALS)('%s: the rate control has the rate of the links', (original) => {
    expect(settings(original).nic.cc).toMatchObject({ name: 'dcqcn', linkRateBps: 25e9 });
  });

  test("steps and marking of HPCC's simulator are proportional to the rate", () => {
    const at25 = settings('hpcc-ns3');
    const at100 = settings('hpcc-ns3', { topology: { kind: 'star', hosts: 3, rate: '100Gbps' } });
    expect(at25.nic.cc).toMatchObject({ additiveIncreaseBps: 5e6, hyperIncreaseBps: 50e6, firstCnpRateBps: 25e9 });
    expect(at100.nic.cc).toMatchObject({ additiveIncreaseBps: 20e6, hyperIncreaseBps: 200e6 });
    expect(at25.switch.ecn).toMatchObject({ kminBytes: 100e3, kmaxBytes: 400e3, pmax: 0.2 });
    expect(at100.switch.ecn).toMatchObject({ kminBytes: 400e3, kmaxBytes: 1600e3 });
  });

  test("HPCC has every step multiplicative, its step by the rate, and the longest idle round trip, as HPCC's simulator", () => {
    const topology = { kind: 'dumbbell', hosts: 4, rate: '25Gbps', delay: '1us' } as const;
    for (const cc of ['hpcc', 'hpcc-pint'] as const) {
      const control = settings('hpcc-ns3', { topology, nic: { cc } }).nic.cc as { baseRttNs: number };
      expect(control).toMatchObject({
        name: cc,
        increaseStages: 0,
        targetUtilization: 0.95,
        additiveIncreaseBps: 10e6,
      });
      // Three cables of 1 us each way, and a packet and an acknowledgement of 1,192 bytes together on each.
      expect(control.baseRttNs).toBeCloseTo(6000 + (3 * 1192 * 8) / 25, 6);
    }
  });

  test('a faster link between switches has its own marking', () => {
    const topology = { kind: 'dumbbell', hosts: 4, rate: '25Gbps', middleRate: '100Gbps' } as const;
    const { ecn, portConfig } = settings('hpcc-ns3', { topology }).switch;
    expect(ecn).toMatchObject({ kminBytes: 100e3 });
    expect(portConfig?.['s1']?.ecn).toMatchObject({ kminBytes: 400e3 });
  });

  test('marking and memory of the scenario stay; each flow has the parameters of its rate control', () => {
    const ecn = { kind: 'red', kminBytes: 5000, kmaxBytes: 200_000, pmax: 0.01 } as const;
    const { flows, switch: config } = settings('hpcc-ns3', {
      switch: { ecn, queuePackets: 1000 },
      flows: [{ kind: 'flows', from: 'h0', to: 'h2', cc: { name: 'timely', minimumRateBps: '1Gbps' } }],
    });
    expect(config).toEqual({ ecn, queuePackets: 1000 });
    expect(flows[0].cc).toMatchObject({ name: 'timely', proportionalSteps: 0, minimumRateBps: 100e6 });
  });

  test('rate controls that it lacks and hosts of several rates are rejected', () => {
    expect(() => settings('ns3-rdma', { nic: { cc: 'timely' } })).toThrow(/no rate control timely.*none, dcqcn/);
    const links = [
      { a: 'h0', b: 's0', rate: 10e9 },
      { a: 'h1', b: 's0', rate: 40e9 },
    ];
    const topology = { kind: 'links', hosts: ['h0', 'h1'], switches: ['s0'], links } as const;
    const flows = [{ kind: 'flows', from: 'h0', to: 'h1' }] as const;
    expect(() => settings('mlx5', { topology: structuredClone(topology) as never, flows: [...flows] })).toThrow(
      /different rates/,
    );
  });

  test('--set wins over them, for single parameters and for a whole rate control', async () => {
    const load = async (set: string[]) => (await loadScenario({ name: 'timely-n2', set, like: 'hpcc-ns3' })).nic.cc;
    expect(await load(['nic.cc.minimumRateBps=1Gbps'])).toMatchObject({ minimumRateBps: 1e9, proportionalSteps: 0 });
    expect(await load(['nic.cc={"name":"dcqcn","gain":0.5}'])).toMatchObject({
      name: 'dcqcn',
      gain: 0.5,
      linkRateBps: 1e10,
    });
    expect(await load(['nic.cc=dcqcn'])).toMatchObject({ name: 'dcqcn', additiveIncreaseBps: 2e6 });
  });
});
