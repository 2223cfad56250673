// @ts-check
/**
 * Compares recovery schemes by loss and reordering, ways over many paths, and rate controls by incast, in the
 * simulator: the same numbers on every machine.
 *
 *   npm run build && node bench/transports.js --help
 */

import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { csvOf, measuredRun } from '../build/packages/lab/src/commands/sim/sweep/measures.js';
import { sweepChart } from '../build/packages/lab/src/commands/sim/sweep/sweep-chart.js';
import { runScenario } from '../build/packages/lab/src/sim/scenario/run-scenario.js';
import { parseScenario } from '../build/packages/lab/src/sim/scenario/schema.js';
import { RoundRobinEntropies } from '../build/src/retransmit/entropy-choice.js';
import { GoBackNReceiver, GoBackNSender } from '../build/src/retransmit/go-back-n.js';
import { registerRecovery } from '../build/src/retransmit/recovery-schemes.js';
import { SelectiveRepeatReceiver, SelectiveRepeatSender } from '../build/src/retransmit/selective-repeat.js';
import { wrap } from '../scripts/wrap.js';

const PAGE = new URL('../docs/schemes-compared.md', import.meta.url);
const BEGIN = '<!-- begin of the tables by bench/transports.js -->\n';
const END = '<!-- end of the tables -->\n';

const HELP = `usage: node bench/transports.js [--write | --check] [--csv FILE] [--plot FILE]

Compares recovery schemes, ways over many paths, and rate controls in the
simulator, and prints the tables of docs/schemes-compared.md.

  --write      write the tables into the page
  --check      only say whether the page has these tables
  --csv FILE   write one line for each run, with the columns of 'rocev2 sim sweep'
  --plot FILE  write the efficiency of recovery schemes by loss as an SVG chart
  --help       print this help

Examples:
  node bench/transports.js --csv runs.csv
  node bench/transports.js --plot recovery.svg
`;

/** @returns {{ write?: boolean, check?: boolean, csv?: string, plot?: string, help?: boolean }} */
function optionsOf() {
  const isFlag = { type: /** @type {const} */ ('boolean') };
  const file = { type: /** @type {const} */ ('string') };
  try {
    return parseArgs({ options: { write: isFlag, check: isFlag, help: isFlag, csv: file, plot: file } }).values;
  } catch (error) {
    console.error(`${/** @type {Error} */ (error).message}\n\n${HELP}`);
    process.exit(2);
  }
}
const options = optionsOf();
if (options.help) {
  process.stdout.write(HELP);
  process.exit();
}

/** @type {import('../build/packages/lab/src/commands/sim/sweep/measures.js').MeasuredRun[]} */
const measured = [];

/**
 * @param {string} network What of the table it is.
 * @param {string} scheme
 * @param {{ readonly name: string, readonly [field: string]: unknown }} scenario
 */
async function run(network, scheme, scenario) {
  const result = await runScenario(parseScenario(scenario), { realNowNs: () => 0 });
  measured.push(measuredRun({ point: { network, scheme, scenario: scenario.name }, result }));
  return result;
}

/** @param {readonly (readonly (string | number)[])[]} rows */
const table = ([head, ...rows]) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

// ---- recovery schemes

/** @type {readonly (readonly [string, string | object])[]} */
const RECOVERIES = [
  ['go-back-0', 'go-back-0'],
  ['go-back-n', 'go-back-n'],
  ['selective-repeat', 'selective-repeat'],
  ['irn', { name: 'irn', lowTimeoutNs: '100us', highTimeoutNs: '320us' }],
  ['rack', 'rack'],
  ['multipath', 'multipath'],
  ['melo', 'melo'],
  ['dcp', 'dcp'],
];
/** @type {readonly (readonly [string, string | undefined])[]} */
const MISHAPS = [
  ['no loss', undefined],
  ['0.01 % lost', 'random=0.0001'],
  ['0.1 % lost', 'random=0.001'],
  ['1 % lost', 'random=0.01'],
  ['5 % lost', 'random=0.05'],
  ['0.1 % late by 8', 'reorder=0.001,8'],
  ['1 % late by 8', 'reorder=0.01,8'],
];

/**
 * @param {string} mishap
 * @param {string} name
 * @param {string | object} recovery
 * @param {string | undefined} faults
 */
async function useful(mishap, name, recovery, faults) {
  const { summary, flows } = await run(mishap, name, {
    name: 'recovery',
    duration: '10ms',
    topology: { kind: 'pair', rate: '40Gbps', delay: '2us' },
    nic: { recovery, inflight: 220, timeout: 8 },
    ...(faults !== undefined && { faults: `h0>h1:${faults}` }),
    flows: [{ kind: 'flows', from: 'h0', to: 'h1', message: '1MiB', outstanding: 4 }],
  });
  if (flows[0].failure !== null) return 'gives up';
  return `${(100 * summary.efficiency).toFixed(1)} % (${summary.retransmittedPackets})`;
}

async function recoveryTable() {
  const rows = [];
  for (const [name, recovery] of RECOVERIES) {
    const cells = [];
    for (const [mishap, faults] of MISHAPS) cells.push(await useful(mishap, name, recovery, faults));
    rows.push([`\`${name}\``, ...cells]);
  }
  return table([['recovery', ...MISHAPS.map(([name]) => name)], ...rows]);
}

async function incastTable() {
  const rows = [];
  for (const [name, recovery] of RECOVERIES) {
    const { summary } = await run('shallow buffer', name, {
      name: 'shallow-incast',
      duration: '60ms',
      topology: { kind: 'star', hosts: 9, rate: '40Gbps', delay: '2us' },
      nic: { recovery, inflight: 220, timeout: 8 },
      switch: { queuePackets: 217 },
      flows: [{ kind: 'flows', from: 'h0..h7', to: 'h8', bytes: '4MiB' }],
    });
    const { count, p99Ns } = summary.completions;
    const { droppedPackets, retransmittedPackets } = summary;
    rows.push([
      `\`${name}\``,
      `${count} of 8`,
      count === 8 ? microseconds(p99Ns) : '-',
      droppedPackets,
      retransmittedPackets,
    ]);
  }
  return table([['recovery', 'completed flows', 'FCT, p99', 'packets dropped', 'packets retransmitted'], ...rows]);
}

// ---- many paths

const ENTROPIES = 64;

/**
 * Sprays a scheme that judges losses by order.
 * @template {new () => import('../build/src/retransmit/recovery.js').SenderRecovery} S
 * @template {new () => import('../build/src/retransmit/recovery.js').ReceiverRecovery} R
 * @param {string} name
 * @param {S} Sender
 * @param {R} Receiver
 */
function registerSprayed(name, Sender, Receiver) {
  const turn = new RoundRobinEntropies(ENTROPIES);
  registerRecovery({
    name,
    summary: 'sprayed',
    parameters: {},
    usesSack: Sender !== /** @type {unknown} */ (GoBackNSender),
    entropies: () => ENTROPIES,
    sender: () => Object.assign(new Sender(), { nextEntropy: () => turn.next() }),
    receiver: () => new Receiver(),
  });
}
registerSprayed('sprayed-go-back-n', GoBackNSender, GoBackNReceiver);
registerSprayed('sprayed-selective-repeat', SelectiveRepeatSender, SelectiveRepeatReceiver);

/** @type {readonly (readonly [string, string | object])[]} */
const SPREADS = [
  ['ECMP, `go-back-n`', 'go-back-n'],
  ['ECMP, `rack`', 'rack'],
  ['in turn, `go-back-n`', 'sprayed-go-back-n'],
  ['in turn, `selective-repeat`', 'sprayed-selective-repeat'],
  ['in turn, `multipath` (losses by time)', { name: 'multipath', choice: 1 }],
  ['REPS, `multipath`', { name: 'multipath', choice: 2 }],
  ['bitmap, `multipath`', { name: 'multipath', choice: 3 }],
];

/**
 * @param {string} paths
 * @param {string} name
 * @param {string | object} recovery
 * @param {object} more
 */
async function spread(paths, name, recovery, more) {
  const { flows, summary } = await run(paths, name, {
    name: 'eight-paths',
    duration: '1ms',
    topology: { kind: 'leaf-spine', leaves: 2, spines: 8, hostsPerLeaf: 4, rate: '100Gbps', delay: '1us' },
    nic: { mtu: 4096, recovery, timeout: 8, inflight: 125 },
    flows: [0, 1, 2, 3].map((i) => ({ kind: 'flows', from: `h${i}`, to: `h${i + 4}`, message: '1MiB' })),
    ...more,
  });
  const rates = flows.map(({ goodputBps }) => goodputBps);
  const slowest = Math.min(...rates) / 1e9;
  const mean = rates.reduce((sum, rate) => sum + rate, 0) / rates.length / 1e9;
  const failed = summary.failedFlows > 0 ? `, ${summary.failedFlows} give up` : '';
  return `${mean.toFixed(1)} / ${slowest.toFixed(1)} (${summary.retransmittedPackets}${failed})`;
}

/** @type {readonly (readonly [string, object])[]} */
const PATHS = [
  ['all paths good', {}],
  ['one loses 10 %', { faults: '*>p5:random=0.1' }],
  ['one fails', { happenings: [{ do: 'fail', at: '100us', what: 'p5', reroute: '1s' }] }],
];

async function pathTable() {
  const rows = [];
  for (const [name, recovery] of SPREADS) {
    const cells = [];
    for (const [paths, more] of PATHS) cells.push(await spread(paths, name, recovery, more));
    rows.push([name, ...cells]);
  }
  return table([['way, recovery', ...PATHS.map(([name]) => name)], ...rows]);
}

// ---- an incast over many paths

const NSCC = { name: 'nscc', packetBytes: 4096, baseRttNs: '9us' };
const RCCC = { name: 'rccc', packetBytes: 4096, baseRttNs: '9us' };
const MARKING = { kind: 'red', kminBytes: 100_000, kmaxBytes: 200_000, pmax: 1 };
const REPS = { name: 'multipath', choice: 2 };
/** @type {readonly (readonly [string, object, object])[]} */
const CUTS = [
  ['ECMP, `rack`', { recovery: 'rack' }, {}],
  ['REPS, `multipath`', { recovery: REPS }, {}],
  ['the same, trimming', { recovery: REPS }, { trim: {} }],
  ['in turn, `dcp`', { recovery: 'dcp' }, {}],
  ['the same, trimming', { recovery: 'dcp' }, { trim: {} }],
  ['REPS, `multipath`, `nscc`', { recovery: REPS, cc: NSCC }, { ecn: MARKING }],
  ['the same, trimming', { recovery: REPS, cc: { ...NSCC, targetRtts: 0.75 } }, { trim: {}, ecn: MARKING }],
  ['REPS, `multipath`, `rccc`', { recovery: REPS, cc: RCCC }, {}],
  ['the same, trimming', { recovery: REPS, cc: RCCC }, { trim: {} }],
];

async function trimTable() {
  const rows = [];
  let untrimmed = '';
  for (const [name, nic, network] of CUTS) {
    const isTrimmed = Object.hasOwn(network, 'trim');
    if (!isTrimmed) untrimmed = name;
    const { summary } = await run('eight paths', isTrimmed ? `${untrimmed}, trimming` : name, {
      name: 'short-queue',
      duration: '20ms',
      topology: { kind: 'leaf-spine', leaves: 2, spines: 8, hostsPerLeaf: 8, rate: '100Gbps', delay: '1us' },
      nic: { mtu: 4096, timeout: 8, inflight: 125, ...nic },
      switch: { queuePackets: 64, ...network },
      flows: [{ kind: 'flows', from: 'h0..h7', to: 'h8', bytes: '2MiB' }],
    });
    const { count, p50Ns, p99Ns } = summary.completions;
    const { droppedPackets, retransmittedPackets } = summary;
    rows.push([name, `${count} of 8`, microseconds(p50Ns), microseconds(p99Ns), droppedPackets, retransmittedPackets]);
  }
  return table([
    ['way, recovery, control', 'completed flows', 'FCT, p50', 'FCT, p99', 'packets dropped', 'packets retransmitted'],
    ...rows,
  ]);
}

// ---- rate controls

const LINK = { linkRateBps: '100Gbps' };
/** The floor of the others. With the default, 10 Mb/s, a segment of TIMELY takes 51 ms, and nothing is measured in between. */
const TIMELY = { ...LINK, minimumRateBps: '100Mbps', segmentBytes: '16KB', additiveIncreaseBps: '100Mbps' };
const STEP = { kind: 'red', kminBytes: 65_000, kmaxBytes: 65_000, pmax: 1 };
const RAMP = { kind: 'red', kminBytes: 400_000, kmaxBytes: 1_600_000, pmax: 0.2 };
/** @type {readonly (readonly [string, object, object?])[]} */
const CONTROLS = [
  ['none', { name: 'none' }],
  ['dcqcn', { name: 'dcqcn', ...LINK, additiveIncreaseBps: '100Mbps' }, RAMP],
  ['timely', { name: 'timely', ...TIMELY }],
  ['patched-timely', { name: 'patched-timely', ...TIMELY }],
  ['dctcp', { name: 'dctcp' }, STEP],
  ['swift', { name: 'swift' }],
  ['hpcc', { name: 'hpcc' }],
  ['hpcc-pint', { name: 'hpcc-pint' }],
  ['powertcp', { name: 'powertcp' }],
  ['theta-powertcp', { name: 'theta-powertcp' }],
  ['nscc', { name: 'nscc', baseRttNs: '5us' }, STEP],
  ['rccc', { name: 'rccc', baseRttNs: '5us' }],
];

/**
 * @param {object} cc
 * @param {object | undefined} ecn
 */
const network = (cc, ecn) => ({
  topology: { kind: 'star', hosts: 17, rate: '100Gbps', delay: '1us' },
  nic: { cc, timeout: 14 },
  switch: { queuePackets: 65_536, bufferPackets: 131_072, ...(ecn !== undefined && { ecn }) },
});

/** @param {number} bytes */
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(bytes < 10_000 ? 1 : 0)} KB`;
/** @param {number | null} ns */
const microseconds = (ns) => (ns === null ? '-' : `${(ns / 1000).toFixed(0)} us`);

async function controlTable() {
  const head = ['control', 'efficiency', 'Jain', 'queue, mean', 'queue, p99', 'FCT, p50', 'FCT, p99'];
  const rows = [];
  for (const [name, cc, ecn] of CONTROLS) {
    const endless = await run('100 Gb/s', name, {
      name: 'incast',
      ...network(cc, ecn),
      duration: '10ms',
      warmup: '5ms',
      flows: [{ kind: 'flows', from: 'h0..h15', to: 'h16' }],
    });
    const short = await run('100 Gb/s', name, {
      name: 'short-flows',
      ...network(cc, ecn),
      duration: '20ms',
      flows: [
        { kind: 'flows', from: 'h0..h3', to: 'h16' },
        { kind: 'flows', from: 'h4..h15', to: 'h16', bytes: '16KiB', each: 4, start: '1ms', stagger: '50us' },
      ],
    });
    const { efficiency, jain, queueMeanBytes, queueP99Bytes } = endless.summary;
    const { p50Ns, p99Ns, unfinished } = short.summary.completions;
    rows.push([
      `\`${name}\``,
      efficiency.toFixed(3),
      jain.toFixed(3),
      kilobytes(queueMeanBytes),
      kilobytes(queueP99Bytes),
      microseconds(p50Ns),
      microseconds(p99Ns) + (unfinished > 0 ? `, ${unfinished} unfinished` : ''),
    ]);
  }
  return table([head, ...rows]);
}

const tables = wrap(
  [
    [
      '**Recovery schemes**: efficiency, and packets retransmitted in 10 ms. One flow of WRITEs of 1 MiB at 40 Gb/s, 2 us per cable, 220 packets in flight.',
      '`irn` has the timeouts of its paper and 110 packets.',
    ].join('\n'),
    await recoveryTable(),
    '**Incast without pauses**: 8 flows of 4 MiB into one port of 40 Gb/s with 217 packets of buffer, a run of 60 ms.',
    await incastTable(),
    [
      '**Eight paths**: payload in Gb/s, the mean of four flows / the slowest, and packets retransmitted in 1 ms. The network has two leaves and eight spines,',
      'with 100 Gb/s, 1 us and MTU 4096 on each cable. Each host of one leaf sends to one of the other, from 64 source ports.',
      'In the third column a spine stops at 100 us, and no switch notices.',
    ].join('\n'),
    await pathTable(),
    [
      '**Eight paths into one port**: 8 flows of 2 MiB from one leaf to one host of the other. Queues have 64 packets of 4 KiB.',
      'With trimming, packets are trimmed instead of dropped. The port can carry them in 1,384 us.',
    ].join('\n'),
    await trimTable(),
    [
      '**Rate controls** at 100 Gb/s, 1 us per cable, without pauses and with an unlimited buffer. The first four columns: 16 endless flows into one port,',
      'from 5 to 10 ms. FCT: 48 flows of 16 KiB, one every 50 us, into the port of four endless flows.',
    ].join('\n'),
    await controlTable(),
  ].join('\n\n'),
);

if (options.csv !== undefined) writeFileSync(options.csv, csvOf(measured));
if (options.plot !== undefined) {
  const ofLoss = measured
    .filter(({ point }) => point['scenario'] === 'recovery')
    .map(({ point: { network, scheme }, ...rest }) => ({ ...rest, point: { network, scheme } }));
  writeFileSync(options.plot, sweepChart('Recovery schemes by loss and reordering', ofLoss, ['efficiency']));
}
if (!options.write && !options.check) console.log(tables);
else {
  const text = readFileSync(PAGE, 'utf8');
  const wanted = `${text.slice(0, text.indexOf(BEGIN) + BEGIN.length)}\n${tables}\n\n${text.slice(text.indexOf(END))}`;
  if (options.write) writeFileSync(PAGE, wanted);
  else if (text !== wanted) {
    console.error(
      'docs/schemes-compared.md is not what the simulator says: npm run build && node bench/transports.js --write',
    );
    process.exitCode = 1;
  }
}
