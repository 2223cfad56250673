// @ts-check
/**
 * Processor time of HPCC's ns-3 simulator and of `rocev2 sim run` for the same traffic, in turn:
 *
 *   npm run built && node bench/ns3/speed.js PROGRAM CHECKOUT FOLDER [--reps 3] [--only star|fat-tree] [--microseconds 500]
 *
 * PROGRAM and CHECKOUT are those of build.js; FOLDER is for files of the runs. Both run DCQCN with the settings of that
 * simulator on packets of 1,000 bytes, and acknowledge each. Times are those of whole processes, with set-up.
 */

import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { simulate } from './simulator.js';
import { writeStar } from './star.js';

const ROCEV2 = 'packages/cli/bin/rocev2.js';
/** HPCC's WebSearch table: sizes in bytes, and the share of flows up to it in percent. */
const WEB_SEARCH = [
  [0, 0],
  [10e3, 15],
  [20e3, 20],
  [30e3, 30],
  [50e3, 40],
  [80e3, 53],
  [200e3, 60],
  [1e6, 70],
  [2e6, 80],
  [5e6, 90],
  [10e6, 97],
  [30e6, 100],
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    reps: { type: 'string', default: '3' },
    only: { type: 'string' },
    microseconds: { type: 'string', default: '500' },
  },
});
if (positionals.length !== 3) throw new Error('usage: node bench/ns3/speed.js PROGRAM CHECKOUT FOLDER [--reps 3]');
const [program, checkout, folder] = positionals;
mkdirSync(folder, { recursive: true });

/** A generator by Marsaglia (xorshift32), in [0, 1). @param {number} seed */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** Poisson arrivals of WebSearch flows between random hosts, at `load` of the links. @param {{ hosts: number, gbps: number, load: number, seconds: number }} traffic @param {string} path */
function writeFlows({ hosts, gbps, load, seconds }, path) {
  const random = randomFrom(1);
  const pairs = WEB_SEARCH.slice(1).map(([bytes, percent], i) => ({ from: WEB_SEARCH[i], bytes, percent }));
  const meanBytes = pairs.reduce(
    (sum, { from, bytes, percent }) => sum + ((from[0] + bytes) / 2) * ((percent - from[1]) / 100),
    0,
  );
  const perSecond = (load * hosts * gbps * 1e9) / 8 / meanBytes;
  const lines = [];
  for (let at = -Math.log(1 - random()) / perSecond; at < seconds; at += -Math.log(1 - random()) / perSecond) {
    const source = Math.floor(random() * hosts);
    const target = (source + 1 + Math.floor(random() * (hosts - 1))) % hosts;
    const percent = random() * 100;
    const part = pairs.find((pair) => percent <= pair.percent) ?? pairs[pairs.length - 1];
    const share = (percent - part.from[1]) / (part.percent - part.from[1]);
    const bytes = Math.max(1, Math.round(part.from[0] + share * (part.bytes - part.from[0])));
    lines.push(`${source} ${target} 3 100 ${bytes} ${(2 + at).toFixed(9)}`);
  }
  writeFileSync(path, `${lines.length}\n${lines.join('\n')}\n`);
  return lines.length;
}

/** Seconds of the processor, user and system, of `rocev2 ARGS`, and its document. @param {readonly string[]} args */
async function ours(args) {
  const child = spawn('bash', [
    '-c',
    `TIMEFORMAT='%U %S'; time "$@"`,
    'bash',
    process.execPath,
    ROCEV2,
    ...args,
    '--json',
  ]);
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`rocev2 ${args.join(' ')} ended with ${code}: ${stderr}`);
  const [user, system] = (stderr.trim().split('\n').at(-1) ?? '').split(' ').map(Number);
  return { processorSeconds: user + system, summary: JSON.parse(stdout).summary };
}

/** The files of a case: flows, hosts and time. @typedef {{ name: string, theirs: import('./simulator.js').Run, args: string[] }} Case */

/** @returns {Case[]} */
function cases() {
  const star = writeStar(16, 40, folder);
  const microseconds = Number(values.microseconds);
  const tree = { topology: join(checkout, 'mix', 'fat.txt'), flows: join(folder, 'fat-flows.txt') };
  const count = writeFlows({ hosts: 320, gbps: 100, load: 0.5, seconds: microseconds / 1e6 }, tree.flows);
  const common = [
    '--like',
    'hpcc-ns3',
    '--set',
    'switch={}',
    '--set',
    'nic.cc=dcqcn',
    '--set',
    'payload=virtual',
    '--set',
    'flows[0].message=1000',
    '--set',
    'warmup=0',
    '--set',
    'assertions=[]',
  ];
  return [
    {
      name: 'star, 16 flows to one host, 40 Gb/s, 50 ms',
      theirs: { control: 'dcqcn', gbps: 40, ...star, seconds: 0.05, bufferMib: 12 },
      args: ['sim', 'run', 'timely-n16', ...common, '--set', 'topology.rate=40Gbps', '--set', 'duration=50ms'],
    },
    {
      name: `fat tree, 320 hosts, 100 Gb/s, ${count} WebSearch flows at load 0.5, ${microseconds} us`,
      theirs: { control: 'dcqcn', gbps: 100, ...tree, seconds: microseconds / 1e6, bufferMib: 32 },
      args: [
        'sim',
        'run',
        'timely-n16',
        ...common,
        '--topology',
        tree.topology,
        '--flows',
        tree.flows,
        '--set',
        'queuePairs=per-flow',
        '--set',
        `duration=${microseconds}us`,
      ],
    },
  ];
}

const median = (/** @type {number[]} */ numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >>> 1];
for (const { name, theirs, args } of cases()) {
  if (values.only !== undefined && !name.startsWith(values.only.replace('-', ' '))) continue;
  /** @type {number[][]} */
  const seconds = [[], []];
  for (let rep = 0; rep < Number(values.reps); rep++) {
    seconds[0].push((await simulate(program, theirs, folder)).processorSeconds);
    seconds[1].push((await ours(args)).processorSeconds);
    process.stderr.write(`${name}: ns-3 ${seconds[0].at(-1)} s, rocev2 ${seconds[1].at(-1)} s\n`);
  }
  const [ns3, own] = seconds.map(median);
  process.stdout.write(`| ${name} | ${ns3.toFixed(1)} s | ${own.toFixed(1)} s | ${(ns3 / own).toFixed(2)} |\n`);
}
