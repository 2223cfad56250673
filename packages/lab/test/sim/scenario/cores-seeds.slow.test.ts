/** Random networks, random traffic, any number of parts: the document of the run that is not divided. Delays and rates are few, so that much happens at the same time. */

import { expect, test } from 'vitest';
import { SeededRandom } from '../../../../../src/core/random.js';
import { Dice } from '../../../../../test/support/dice.js';
import { runDivided } from '../../../../../test/support/divided-run.js';
import { repetitions } from '../../../../../test/support/repetitions.js';
import { runScenario } from '../../../src/sim/scenario/run-scenario.js';
import { parseScenario, type ScenarioFile } from '../../../src/sim/scenario/schema.js';

/** Switches in a random tree with some links more, one to three hosts on most of them. */
function topologyOf(dice: Dice): Extract<ScenarioFile['topology'], { kind: 'links' }> {
  const switches = Array.from({ length: dice.int(2, 6) }, (_, i) => `s${i}`);
  const hosts: string[] = [];
  const links: Array<{ a: string; b: string; rate: string; delay: string }> = [];
  const link = (a: string, b: string): void => {
    if (links.some((other) => [other.a, other.b].sort().join() === [a, b].sort().join())) return;
    links.push({ a, b, rate: dice.pick(['10Gbps', '40Gbps']), delay: dice.pick(['200ns', '1us']) });
  };
  const addHost = (name: string): void => {
    hosts.push(`h${hosts.length}`);
    link(hosts[hosts.length - 1], name);
  };
  for (const [i, name] of switches.entries()) {
    if (i > 0) link(name, switches[dice.int(0, i - 1)]);
    for (let k = i < 2 || dice.chance(0.7) ? dice.int(1, 3) : 0; k > 0; k--) addHost(name);
  }
  for (let k = 0; k < 2; k++) {
    const [a, b] = [dice.pick(switches), dice.pick(switches)];
    if (a !== b) link(a, b);
  }
  for (const name of switches) if (links.filter(({ a, b }) => a === name || b === name).length < 2) addHost(name);
  return { kind: 'links', hosts, switches, links };
}

function scenarioOf(dice: Dice, seed: number): ScenarioFile {
  const topology = topologyOf(dice);
  const hosts = `h0..h${topology.hosts.length - 1}`;
  const [last, ...others] = topology.hosts.toReversed();
  return {
    name: 'random',
    seed,
    duration: '80us',
    warmup: '10us',
    sample: '5us',
    topology,
    payload: dice.pick(['virtual', 'virtual', 'real']),
    nic: {
      timeout: dice.int(1, 3),
      recovery: dice.pick(['go-back-n', 'selective-repeat', 'rack']),
      cc: dice.pick(['none', 'dcqcn', 'swift']),
    },
    switch: dice.pick<NonNullable<ScenarioFile['switch']>>([
      { queuePackets: 24 },
      { pfc: { priorities: [0] }, buffer: { totalBytes: '600KB' } },
      { ecn: { kind: 'red', kminBytes: 4_000, kmaxBytes: 40_000, pmax: 0.2 } },
    ]),
    ...(dice.chance(0.3) && { faults: 'random=0.01; reorder=0.01,4; duplicate=0.01' }),
    flows: [
      {
        kind: 'poisson',
        from: hosts,
        to: hosts,
        op: dice.pick(['write', 'send', 'read']),
        load: 0.4,
        sizes: [
          [0, 0],
          [3_000, 60],
          [40_000, 100],
        ],
      },
      { kind: 'flows', from: others, to: last, bytes: dice.int(500, 12_000), start: '10us' },
    ],
  };
}

test.each(Array.from({ length: repetitions(3, 8) }, (_, i) => i + 1))('seed %i', async (seed) => {
  const dice = new Dice(new SeededRandom(seed).stream('cores'));
  const file = scenarioOf(dice, seed);
  const { links } = file.topology as ReturnType<typeof topologyOf>;
  const racks = new Set(links.filter(({ a }) => a.startsWith('h')).map(({ b }) => b)).size;
  const whole = await runScenario(parseScenario({ ...file, cores: 1 }));
  const parts = dice.int(2, racks);
  // What a fault rule holds back may come after its queue pairs have gone.
  const queuePairs = file.faults === undefined && seed % 2 === 0 ? 'per-flow' : 'at-start';
  const { result, crossings } = await runDivided(parseScenario({ ...file, cores: parts, queuePairs }), parts);
  expect(crossings).toBeGreaterThan(0);
  expect(JSON.stringify(result)).toBe(JSON.stringify(whole));
});
