/** A run that is divided among several logical processes gives the document of one that is not, to the last packet. */

import { describe, expect, test } from 'vitest';
import { runDivided } from '../../../../../test/support/divided-run.js';
import { fourRacks } from '../../../../../test/support/four-racks.js';
import { repeated } from '../../../../../test/support/repetitions.js';
import { divide, lookaheadNs } from '../../../src/sim/logical-process.js';
import type { ScenarioResult } from '../../../src/sim/scenario/result.js';
import { runScenario } from '../../../src/sim/scenario/run-scenario.js';
import { parseScenario, type ScenarioFile } from '../../../src/sim/scenario/schema.js';
import { topologyOf } from '../../../src/sim/scenario/topology-of.js';

/** Flows of many sizes over two tiers, with pauses and DCQCN. */
const FABRIC: ScenarioFile = {
  ...fourRacks(3),
  duration: '60us',
  warmup: '10us',
  flows: [
    {
      kind: 'poisson',
      from: 'h0..h11',
      to: 'h0..h11',
      load: 0.6,
      sizes: [
        [0, 0],
        [2_000, 50],
        [30_000, 90],
        [200_000, 100],
      ],
    },
  ],
};

/** Six hosts of three racks send to one of the fourth. */
const INCAST: ScenarioFile = {
  ...FABRIC,
  name: 'incast',
  duration: '250us',
  flows: [{ kind: 'incast', from: 'h0..h8', to: 'h9', fanIn: 8, bytes: 60_000, every: '90us', until: '100us' }],
};

/** Equal but for the time it took, which is none here. */
async function expectSame(file: ScenarioFile, counts: readonly number[] = [4]): Promise<ScenarioResult> {
  const whole = await runScenario(parseScenario({ ...file, cores: 1 }));
  for (const cores of counts) {
    const { result, crossings, windows } = await runDivided(parseScenario({ ...file, cores }), cores);
    expect(crossings).toBeGreaterThan(50);
    expect(windows).toBeGreaterThan(10);
    expect(result).toEqual(whole);
    expect(JSON.stringify(result)).toBe(JSON.stringify(whole));
  }
  return whole;
}

describe('divided runs give the document of one that is not', () => {
  test('flows of many sizes', async () => {
    const { summary } = await expectSame(FABRIC, [2, 3, 4]);
    expect(summary.completions.count).toBeGreaterThan(0);
    expect(summary.cnps).toBeGreaterThan(0);
  });

  test('incast with pauses that cross between parts', async () => {
    const { pfc } = FABRIC.switch!;
    const file = { ...INCAST, nic: { timeout: 14 }, switch: { pfc: pfc!, buffer: { totalBytes: '500KB' } } };
    const { summary } = await expectSame(file, [2, 4]);
    expect(summary.pauseFrames).toBeGreaterThan(0);
    expect(summary.completions.count).toBe(16);
  });

  test.each(['go-back-n', 'selective-repeat', 'irn'])('losses and copies, recovery %s', async (recovery) => {
    const { summary } = await expectSame({
      ...INCAST,
      duration: '2ms',
      nic: { timeout: 4, recovery: recovery as never },
      switch: {},
      faults: 'random=0.01; reorder=0.01,5; duplicate=0.01',
    });
    expect(summary.retransmittedPackets).toBeGreaterThan(0);
  });

  test('losses in full queues', async () => {
    const { summary } = await expectSame({
      ...INCAST,
      duration: '2ms',
      nic: { timeout: 4 },
      switch: { queuePackets: 24 },
    });
    expect(summary.droppedPackets).toBeGreaterThan(0);
  });

  test('a spine that fails, switches that find other ways, and its return', async () => {
    const happenings: NonNullable<ScenarioFile['happenings']> = [
      { do: 'fail', at: '10us', what: 'p0', reroute: '20us' },
      { do: 'repair', at: '50us', what: 'p0', reroute: '2us' },
    ];
    const without = await runScenario(parseScenario({ ...FABRIC, nic: { timeout: 3 }, cores: 1 }));
    const { traceHash, summary } = await expectSame({ ...FABRIC, nic: { timeout: 3 }, happenings });
    expect(traceHash).not.toBe(without.traceHash);
    expect(summary.retransmittedPackets).toBeGreaterThan(0);
  });

  test('a storm of pauses, and an egress that is blocked for a time', async () => {
    await expectSame({
      ...FABRIC,
      happenings: [
        { do: 'storm', at: '20us', host: 'h4', until: '50us' },
        { do: 'block', at: '25us', switch: 'l3', port: 'p1' },
        { do: 'unblock', at: '45us', switch: 'l3', port: 'p1' },
      ],
    });
  });

  test.each(repeated(2, ['rccc', 'hpcc', 'timely', 'swift']))('rate control %s', async (name) => {
    const { ecn } = FABRIC.switch!;
    await expectSame({
      ...FABRIC,
      nic: { cc: { name, linkRateBps: '40Gbps' } as never, timeout: 14 },
      switch: { int: {}, ecn: ecn!, pfc: { priorities: [0] }, buffer: { totalBytes: '2MB' } },
    });
  });

  test.each(['send', 'read'] as const)('op %s, with payload', async (op) => {
    await expectSame({
      ...FABRIC,
      payload: 'real',
      flows: [{ kind: 'flows', from: 'h2..h4', to: 'h5..h7', op, bytes: 20_001, message: '8KiB', stagger: '1us' }],
    });
  });

  test('a receive pipeline, flows without end, and fat trees', async () => {
    await expectSame({
      ...FABRIC,
      duration: '60us',
      topology: { kind: 'fat-tree', k: 4, rate: '25Gbps', delay: '500ns' },
      pipelines: [{ hosts: 'h15', contexts: 2, hit: '80ns', miss: '900ns', buffer: 60_000 }],
      flows: [{ kind: 'flows', from: 'h0..h7', to: 'h15' }],
    });
  });

  test('a connection that fails', async () => {
    const { flows } = await expectSame({
      ...FABRIC,
      duration: '40ms',
      nic: { timeout: 1 },
      happenings: [{ do: 'fail', at: '20us', what: 'l3' }],
      flows: [{ kind: 'flows', from: 'h0..h2', to: 'h9..h11', op: 'send', bytes: 200_000 }],
    });
    expect(flows.some(({ failure }) => failure !== null)).toBe(true);
  });
});

test('the end of a run is that of all flows, whoever has them', async () => {
  const { virtualSeconds } = await expectSame({ ...INCAST, duration: '10ms' });
  expect(virtualSeconds).toBeLessThan(0.005);
});

test('parts that look too far ahead are found out', async () => {
  const run = runDivided(parseScenario({ ...FABRIC, cores: 2 }), 2, 3);
  await expect(run).rejects.toMatchObject({
    code: 'ERR_ROCE_CONFLICT',
    message: expect.stringContaining('looked too far ahead'),
  });
});

test('without cores the order of events is the other one, and the fingerprint as well', async () => {
  const plain = await runScenario(parseScenario(FABRIC));
  const ordered = await runScenario(parseScenario({ ...FABRIC, cores: 1 }));
  expect(plain.traceHash).not.toBe(ordered.traceHash);
});

describe('how a network is divided', () => {
  const partsOf = (topology: ScenarioFile['topology'], processes: number) => {
    const built = topologyOf(parseScenario({ ...FABRIC, topology }).topology);
    return { built, processOf: divide(built, processes) };
  };

  test('racks stay whole, and what has no hosts is shared out', () => {
    const { processOf } = partsOf(FABRIC.topology, 2);
    expect(Object.fromEntries(processOf)).toEqual({
      ...{ l0: 0, l1: 0, l2: 1, l3: 1, p0: 0, p1: 1 },
      ...Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`h${i}`, i < 6 ? 0 : 1])),
    });
  });

  test('each part gets a rack, however unequal they are', () => {
    for (let processes = 1; processes <= 5; processes++) {
      const { processOf } = partsOf({ kind: 'parking-lot', switches: 5, hostsPerSwitch: 3 }, processes);
      expect(new Set(processOf.values()).size).toBe(processes);
    }
    const links = [
      ...Array.from({ length: 7 }, (_, i) => ({ a: `h${i}`, b: 's0' })),
      { a: 'h7', b: 's1' },
      { a: 'h8', b: 's2' },
      { a: 's0', b: 's1' },
      { a: 's1', b: 's2' },
    ];
    const hosts = Array.from({ length: 9 }, (_, i) => `h${i}`);
    const { processOf } = partsOf({ kind: 'links', hosts, switches: ['s0', 's1', 's2'], links }, 3);
    expect([processOf.get('s0'), processOf.get('s1'), processOf.get('s2')]).toEqual([0, 1, 2]);
  });

  test('a pod of a fat tree is in one part', () => {
    const { processOf } = partsOf({ kind: 'fat-tree', k: 4 }, 4);
    for (let i = 0; i < 8; i++) {
      expect(processOf.get(`a${i}`)).toBe(i >> 1);
      expect(processOf.get(`e${i}`)).toBe(i >> 1);
    }
  });

  test('the lookahead is the shortest of the cables between parts, and a header on it', () => {
    const topology = { kind: 'dumbbell', hosts: 4, delay: '10ns', middleDelay: '2us', middleRate: '80Gbps' } as const;
    const { built, processOf } = partsOf(topology, 2);
    expect(lookaheadNs(built.links, processOf)).toBeCloseTo(2000 + 3.8, 9);
    expect(lookaheadNs(built.links, divide(built, 1))).toBe(Number.POSITIVE_INFINITY);
  });

  test('a network with fewer racks is refused', () => {
    expect(() => partsOf({ kind: 'star', hosts: 8 }, 2)).toThrow('2 parts need 2 switches with hosts');
  });
});
