// @ts-check
/**
 * The simulator by the size of its network: packet events a second of processor time, and memory, from 2 to 1,024 hosts at 100 Gb/s with web-search flows at load 0.5. Each size is a process of
 * its own, so that the largest resident set is that of this size.
 *
 *   npm run build && node bench/sim-scale.js [--hosts 2,8,32,128,320,1024] [--payload real|virtual] [--queue-pairs at-start|per-flow] [--microseconds 10000]
 *     [--load 0.5] [--flow-bytes 10000] [--cores 2] [--json]
 *
 * `--microseconds` is the virtual time of each size; without it larger networks run shorter. `--flow-bytes` makes flows of any size up to it in the place of web-search.
 * `--cores` divides the run among so many threads; times are those of the clock then, and `waited` is the share of it in which each thread waited for the others.
 * `connected` in the table is how many flows had queue pairs at a time.
 */

import { execFileSync } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runOnCores } from '../build/packages/lab/src/commands/sim/cores/run-on-cores.js';
import { runScenario } from '../build/packages/lab/src/sim/scenario/run-scenario.js';
import { parseScenario } from '../build/packages/lab/src/sim/scenario/schema.js';

const HOSTS_PER_LEAF = 16;
/** Virtual time, so that every size has about a million packet events. */
const HOST_MICROSECONDS = 51_200;

const { values } = parseArgs({
  options: {
    hosts: { type: 'string', default: '2,8,32,128,320,1024' },
    payload: { type: 'string', default: 'real' },
    'queue-pairs': { type: 'string', default: 'at-start' },
    microseconds: { type: 'string' },
    load: { type: 'string', default: '0.5' },
    'flow-bytes': { type: 'string' },
    cores: { type: 'string' },
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});

/** @param {number} hosts */
function topologyOf(hosts) {
  const link = { rate: '100Gbps', delay: '1us' };
  if (hosts <= 2 * HOSTS_PER_LEAF) return { kind: 'star', hosts, ...link };
  const leaves = Math.ceil(hosts / HOSTS_PER_LEAF);
  return { kind: 'leaf-spine', leaves, spines: Math.ceil(leaves / 4) * 2, hostsPerLeaf: HOSTS_PER_LEAF, ...link };
}

const processorNs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1e3;
};
const nowNs = () => performance.now() * 1e6;

/** @param {number} hosts */
async function measure(hosts) {
  const begunNs = processorNs();
  const microseconds = Number(values.microseconds ?? Math.max(50, Math.round(HOST_MICROSECONDS / hosts)));
  const bytes = values['flow-bytes'];
  const sizes =
    bytes === undefined
      ? 'web-search'
      : [
          [0, 0],
          [Number(bytes), 100],
        ];
  let connected = 0;
  const scenario = parseScenario({
    name: 'scale',
    duration: `${microseconds}us`,
    topology: topologyOf(hosts),
    payload: values.payload,
    queuePairs: values['queue-pairs'],
    ...(values.cores !== undefined && { cores: Number(values.cores) }),
    nic: { cc: { name: 'dcqcn', linkRateBps: '100Gbps', additiveIncreaseBps: '100Mbps' }, timeout: 14 },
    switch: {
      pfc: { priorities: [0] },
      buffer: { totalBytes: 32_000_000 },
      ecn: { kind: 'red', kminBytes: 400_000, kmaxBytes: 1_600_000, pmax: 0.2 },
    },
    flows: [{ kind: 'poisson', from: `h0..h${hosts - 1}`, to: `h0..h${hosts - 1}`, load: Number(values.load), sizes }],
  });
  const startedNs = nowNs();
  const { result, work } =
    (scenario.cores ?? 1) > 1
      ? await runOnCores(scenario, { signal: new AbortController().signal, onProgress() {} })
      : {
          result: await runScenario(scenario, {
            realNowNs: values.cores === undefined ? processorNs : nowNs,
            onConnections: (count) => {
              connected = Math.max(connected, count);
            },
          }),
          work: [],
        };
  return {
    hosts,
    flows: result.flows.length,
    connected,
    traceHash: result.traceHash,
    packetEvents: result.packetEvents,
    virtualUs: result.virtualSeconds * 1e6,
    setUpSeconds:
      (values.cores === undefined ? processorNs() - begunNs : nowNs() - startedNs) / 1e9 - result.wallSeconds,
    processorSeconds: (processorNs() - begunNs) / 1e9,
    waitedShares: work.map(({ seconds, waitedSeconds }) => waitedSeconds / seconds),
    seconds: result.wallSeconds,
    eventsPerSecond: result.eventsPerSecond,
    memoryBytes: process.resourceUsage().maxRSS * 1024,
  };
}

if (values.only !== undefined) process.stdout.write(JSON.stringify(await measure(Number(values.only))));
else {
  const rows = values.hosts.split(',').map((hosts) => {
    const file = fileURLToPath(import.meta.url);
    const given = Object.entries(values).filter(([name, value]) => typeof value === 'string' && name !== 'hosts');
    const args = ['--only', hosts, ...given.flatMap(([name, value]) => [`--${name}`, String(value)])];
    const text = execFileSync(process.execPath, [file, ...args], { encoding: 'utf8' });
    return /** @type {Awaited<ReturnType<typeof measure>>} */ (JSON.parse(text));
  });
  if (values.json) process.stdout.write(`${JSON.stringify({ rows })}\n`);
  else {
    process.stdout.write(
      '| hosts | virtual time | flows | connected | packet events | set-up | run | processor | waited | million a second | memory |\n',
    );
    process.stdout.write('|---|---|---|---|---|---|---|---|---|---|---|\n');
    for (const row of rows) {
      const cells = [
        row.hosts,
        `${row.virtualUs.toFixed(0)} us`,
        row.flows,
        row.connected,
        row.packetEvents,
        `${row.setUpSeconds.toFixed(1)} s`,
        `${row.seconds.toFixed(1)} s`,
        `${row.processorSeconds.toFixed(1)} s`,
        row.waitedShares.map((share) => `${Math.round(100 * share)} %`).join(', ') || '-',
        (row.eventsPerSecond / 1e6).toFixed(2),
        `${(row.memoryBytes / 1e6).toFixed(0)} MB`,
      ];
      process.stdout.write(`| ${cells.join(' | ')} |\n`);
    }
  }
}
