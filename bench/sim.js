// @ts-check
/**
 * Packet events a second of the simulator, one core: departures and arrivals of frames at nodes. Seconds of processor time, so that other programs on the
 * machine do not count. Scenarios interleaved, medians.
 *
 *   node bench/sim.js [--reps 5] [--json]
 */

import process from 'node:process';
import { parseArgs } from 'node:util';
import { override } from '../build/packages/lab/src/sim/scenario/overrides.js';
import { runScenario } from '../build/packages/lab/src/sim/scenario/run-scenario.js';
import { parseScenario } from '../build/packages/lab/src/sim/scenario/schema.js';
import { BUILT_IN_SCENARIOS } from '../build/packages/lab/src/sim/scenarios/index.js';

/** Scenario and overrides, by what the table calls it. */
const CASES = [
  { name: 'star, 2 long flows, 10 ms', scenario: 'dcqcn-n2-4us', set: ['duration=10ms', 'warmup=5ms'] },
  { name: 'star, 16-to-1 incast, 10 ms', scenario: 'dcqcn-n16-4us', set: ['duration=10ms', 'warmup=5ms'] },
  { name: 'the same, path MTU 4096', scenario: 'dcqcn-n16-4us', set: ['duration=10ms', 'warmup=5ms', 'nic.mtu=4096'] },
  { name: 'dumbbell, web-search flows, 100 ms', scenario: 'fct-dcqcn', set: ['duration=100ms'] },
];

const { values } = parseArgs({
  options: { reps: { type: 'string', default: '5' }, json: { type: 'boolean', default: false } },
});

const processorNs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1e3;
};
const median = (/** @type {number[]} */ numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >>> 1];

/** @type {Array<{ rates: number[], seconds: number[], packetEvents: number }>} */
const runs = CASES.map(() => ({ rates: [], seconds: [], packetEvents: 0 }));
// The first round warms the compiler up and is left out.
for (let rep = 0; rep <= Number(values.reps); rep++) {
  for (const [i, { scenario, set }] of CASES.entries()) {
    const file = BUILT_IN_SCENARIOS.find(({ name }) => name === scenario);
    const result = await runScenario(parseScenario(override(file, set)), { realNowNs: processorNs });
    runs[i].packetEvents = result.packetEvents;
    if (rep === 0) continue;
    runs[i].rates.push(result.eventsPerSecond);
    runs[i].seconds.push(result.wallSeconds);
  }
}

const rows = CASES.map(({ name }, i) => ({
  name,
  packetEvents: runs[i].packetEvents,
  seconds: median(runs[i].seconds),
  eventsPerSecond: median(runs[i].rates),
}));
if (values.json) process.stdout.write(`${JSON.stringify({ reps: Number(values.reps), rows })}\n`);
else {
  for (const { name, packetEvents, seconds, eventsPerSecond } of rows) {
    const rate = `${(eventsPerSecond / 1e6).toFixed(2)} million packet events/s`;
    process.stdout.write(`${name.padEnd(36)}${String(packetEvents).padStart(9)} in ${seconds.toFixed(2)} s  ${rate}\n`);
  }
}
