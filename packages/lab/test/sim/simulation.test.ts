/** Networks in virtual time: verbs on hosts, links that fail, topologies of one's own. */

import { describe, expect, test } from 'vitest';
import { Access } from '../../../../src/verbs/access.js';
import { runScenario } from '../../src/sim/scenario/run-scenario.js';
import { parseScenario, type ScenarioFile } from '../../src/sim/scenario/schema.js';
import { Simulation } from '../../src/sim/simulation.js';
import { fatTree, leafSpine, parkingLot, shortestPaths, star } from '../../src/sim/topology.js';

const LINK = { rateBps: 40e9, delayNs: 1000 };

describe('a simulation', () => {
  test('runs verbs in virtual time', async () => {
    const simulation = new Simulation({ topology: star(2, LINK) });
    const ends = await Promise.all(
      ['h0', 'h1'].map(async (host) => {
        const device = await simulation.device(host);
        const [pd, cq] = [await device.createPd(), await device.createCq(16)];
        return { qp: await pd.createQp({ sendCq: cq }), mr: await pd.regMr(4096, Access.REMOTE_ALL), cq, host };
      }),
    );
    for (const [i, { qp }] of ends.entries()) {
      const peer = ends[1 - i];
      await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
      await qp.modify({
        state: 'RTR',
        av: { address: simulation.address(peer.host) },
        pathMtu: 1024,
        destQpn: peer.qp.qpn,
        rqPsn: 0,
        maxDestRdAtomic: 1,
        minRnrTimer: 12,
      });
      await qp.modify({ state: 'RTS', sqPsn: 0, timeout: 14, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 1 });
    }
    const [a, b] = ends;
    const frames: Array<readonly [number, number]> = [];
    simulation.observe('h1', (timeNs, frame) => frames.push([timeNs, frame.length]));
    a.qp.postSend({ opcode: 'RDMA_WRITE', sges: [a.mr.sge()], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
    let doneNs = 0;
    simulation.onActivity('h0', () => {
      if (a.cq.pollOne() !== undefined) doneNs = simulation.nowNs;
    });
    simulation.run({ done: () => doneNs > 0 });
    // There and back over two links of 1 us, and four packets of 1106 bytes at 40 Gb/s, the first of them twice.
    expect(doneNs).toBeGreaterThan(4000 + 5 * 221);
    expect(doneNs).toBeLessThan(4000 + 6 * 221);
    expect(simulation.counters('s0')['h1'].tx_packets).toBe(4);
    // Four packets and the acknowledgement.
    expect(frames.map(([, bytes]) => bytes)).toEqual([1098, 1082, 1082, 1082, 62]);
    // A program that waits: for a completion, for time, and for what never comes.
    const before = simulation.traceHash;
    a.qp.postSend({ opcode: 'RDMA_READ', sges: [a.mr.sge()], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
    simulation.onActivity('h0', () => {});
    expect(await simulation.until(a.cq.next())).toMatchObject({ status: 0 });
    expect(simulation.traceHash).not.toBe(before);
    const { nowNs } = simulation;
    await simulation.until(simulation.sleep(500));
    expect(simulation.nowNs).toBe(nowNs + 500);
    await expect(
      simulation.until(
        simulation.sleep(1e6).then(() => a.cq.next()),
        1,
      ),
    ).rejects.toThrow(/after 1 events/);
    await expect(simulation.until(a.cq.next())).rejects.toThrow(/nothing is left to happen/);
    await expect(simulation.until(Promise.reject(new Error('its own')))).rejects.toThrow('its own');
  });

  test('names what is not there', () => {
    const simulation = new Simulation({ topology: star(2, LINK) });
    expect(() => simulation.address('h2')).toThrow('there is no host h2');
    expect(() => simulation.queuedBytes('s0', 'h2')).toThrow('there is no neighbour of s0 h2');
    expect(() => simulation.counters('s1')).toThrow('there is no switch s1');
    expect(() => simulation.fail('s0-h2')).toThrow('there is no link s0-h2');
  });
});

describe('shapes', () => {
  test('a fat tree of 4-port switches has 16 hosts and four ways between pods', () => {
    const tree = fatTree(4, LINK, LINK);
    expect([tree.hosts.length, tree.switches.length, tree.links.length]).toEqual([16, 20, 48]);
    const ports = tree.switches.map((name) => tree.links.filter(({ a, b }) => a === name || b === name).length);
    expect(new Set(ports)).toEqual(new Set([4]));
    const routes = shortestPaths(tree);
    expect(routes.get('e0')!.get('h15')).toEqual(['a0', 'a1']);
    expect(routes.get('a0')!.get('h15')).toEqual(['c0', 'c1']);
    expect(routes.get('e0')!.get('h0')).toEqual(['h0']);
  });

  test.each([3, 0, 2.5])('a fat tree of %d-port switches is refused', (k) => {
    expect(() => fatTree(k, LINK, LINK)).toThrow('k is even');
  });

  test('a parking lot leads from switch to switch', () => {
    const lot = parkingLot(3, 2, LINK, LINK);
    expect(lot.hosts).toHaveLength(6);
    expect(shortestPaths(lot).get('s0')!.get('h5')).toEqual(['s1']);
  });

  test('without a link the others remain, and hosts without a way are left out', () => {
    const net = leafSpine(2, 2, 1, LINK, LINK);
    const links = (name: string) => net.links.filter(({ a, b }) => `${a}-${b}` === name);
    expect(
      shortestPaths(net, new Set(links('l0-p0')))
        .get('l0')!
        .get('h1'),
    ).toEqual(['p1']);
    expect(
      shortestPaths(net, new Set(links('h1-l1')))
        .get('l0')!
        .has('h1'),
    ).toBe(false);
  });
});

/** Eight flows between two leaves with two spines between them. */
const SPINES: ScenarioFile = {
  name: 'spines',
  duration: '2ms',
  warmup: '1ms',
  topology: { kind: 'leaf-spine', leaves: 2, spines: 2, hostsPerLeaf: 8, rate: '4Gbps', uplinkRate: '40Gbps' },
  nic: { recovery: 'selective-repeat', timeout: 6 },
  flows: [
    {
      kind: 'list',
      message: '64KiB',
      flows: Array.from({ length: 8 }, (_, i) => ({ from: `h${i}`, to: `h${8 + i}`, bytes: '100MB' })),
    },
  ],
};
const run = (file: ScenarioFile) => runScenario(parseScenario(file), { realNowNs: () => 0 });
const used = (result: Awaited<ReturnType<typeof run>>, port: string) =>
  result.queues.find((queue) => queue.port === port)!.utilization;

describe('a spine that fails', () => {
  test('is avoided when switches know of it: all flows go on over the other', async () => {
    const before = await run(SPINES);
    expect(used(before, 'l0>p0')).toBeGreaterThan(0.05);
    const result = await run({ ...SPINES, happenings: [{ do: 'fail', at: '300us', what: 'p0', reroute: '50us' }] });
    expect(used(result, 'l0>p0')).toBe(0);
    expect(used(result, 'l0>p1')).toBeGreaterThan(0.7);
    expect(result.summary.failedFlows).toBe(0);
    expect(result.flows.every(({ bytes }) => bytes > 4e5)).toBe(true);
  });

  test('takes its flows with it while nobody knows', async () => {
    const result = await run({ ...SPINES, happenings: [{ do: 'fail', at: '300us', what: 'p0', reroute: '1s' }] });
    expect(result.flows.some(({ goodputBps }) => goodputBps < 4e8)).toBe(true);
  });

  test('is used again after its repair', async () => {
    const happenings = [
      { do: 'fail', at: '300us', what: 'p0' },
      { do: 'repair', at: '600us', what: 'p0' },
    ] as const;
    expect(used(await run({ ...SPINES, happenings: [...happenings] }), 'l0>p0')).toBeGreaterThan(0.05);
  });

  test('that is not there is refused', async () => {
    await expect(run({ ...SPINES, happenings: [{ do: 'fail', at: 0, what: 'p7' }] })).rejects.toThrow(
      'happenings[0]: there is no link p7',
    );
  });
});

describe('a network of links', () => {
  const triangle: ScenarioFile['topology'] = {
    kind: 'links',
    hosts: ['left', 'right'],
    switches: ['x', 'y'],
    rate: '10Gbps',
    links: [
      { a: 'left', b: 'x', rate: '100Gbps' },
      { a: 'x', b: 'y', rate: '1Gbps', delay: '5us' },
      { a: 'y', b: 'right' },
    ],
  };
  const file = (topology: ScenarioFile['topology']): ScenarioFile => ({
    name: 'links',
    duration: '5ms',
    topology,
    flows: [{ kind: 'flows', from: 'left', to: 'right', bytes: '100KB' }],
  });

  test('has links of its own rates and delays, and a flow alone takes the time that it would take alone', async () => {
    const { flows, slowdowns } = await run(file(triangle));
    // 100 KB and the headers of 98 packets at 1 Gb/s.
    expect(flows[0].completionNs).toBeGreaterThan(800_000);
    expect(flows[0].completionNs).toBeLessThan(1_000_000);
    expect(slowdowns).toMatchObject([{ bytesMax: 100_000, count: 1, unfinished: 0 }]);
    expect(slowdowns[0].p99).toBeCloseTo(1, 2);
  });

  test('shows in slowdowns what flows wait for each other', async () => {
    const two = { ...file(triangle), flows: [{ ...file(triangle).flows[0], each: 2 }] } as ScenarioFile;
    const { slowdowns } = await run(two);
    expect(slowdowns).toHaveLength(2);
    expect(slowdowns[1].p50).toBeGreaterThan(1.8);
  });

  test.each([
    ['a node twice', { hosts: ['left', 'x'] }, 'two nodes have one name'],
    ['a link to nowhere', { links: [{ a: 'left', b: 'z' }] }, 'ends at z, which is not a node'],
    ['a host without a link', { hosts: ['left', 'right', 'far'] }, 'far has 0 links'],
  ])('with %s is refused', async (_what, change, message) => {
    await expect(run(file({ ...triangle, ...change } as never))).rejects.toThrow(message);
  });
});
