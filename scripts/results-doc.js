// @ts-check
// Writes the summaries of results against real peers, docs/interop-results.md and packages/inspect/docs/conformance-results.md, from the JSON files
// that `npm run interop:table` and `npm run conform:table` write, the tables of docs/performance.md and README.md from that of `npm run aims:table`, and the table of packages/kv/docs/kv.md from that of `npm run kv:table`. With --check it only says whether the pages are what it would write;
// with --site it writes the whole tables to scripts/site/results, for the documentation site.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { reachedText, short, verdictLines } from '../bench/aims/verdict.js';
import { withRegion } from './marked-region.js';
import { wrap } from './wrap.js';

/** @typedef {Record<'peer' | 'role' | 'ip' | 'mtu' | 'what' | 'result' | 'day', string>} Cell */
/** @typedef {{ case: string, verdict: string, rules: number[], severity: string, text: string, packets: string[] }} Deviation */
/** @typedef {{ name: string, counts: Record<string, number>, verdicts: Record<string, string>, deviations: Deviation[] }} Result */

/** @typedef {import('../bench/aims/verdict.js').Verdict} Verdict */
/** @typedef {Record<'date' | 'system' | 'node' | 'cpu' | 'crc32', string> & { cores: number, reps: number, remark?: string, aims: Verdict[] }} Aims */

const root = new URL('../', import.meta.url);
const read = (/** @type {string} */ file) => readFileSync(new URL(file, root), 'utf8');
const row = (/** @type {readonly (string | number)[]} */ cells) =>
  `| ${cells.map((text) => `${text}`.replaceAll('|', '\\|')).join(' | ')} |`;
const table = (
  /** @type {readonly string[]} */ head,
  /** @type {readonly (readonly (string | number)[])[]} */ rows,
) => [row(head), `|${'---|'.repeat(head.length)}`, ...rows.map(row), ''];

const interop = /** @type {Cell[]} */ (JSON.parse(read('test/interop/results.json')));
const conformance = /** @type {{ rules: { id: number, severity: string, title: string }[], results: Result[] }} */ (
  JSON.parse(read('packages/inspect/test/conform/results.json'))
);

const results = /** @type {Aims} */ (JSON.parse(read('bench/aims/results.json')));

/** The tool that a cell runs against, without its options. */
const toolOf = (/** @type {Cell} */ { peer, role }) => (role === '' ? 'whole suites' : peer.split(/ -|,/)[0]);

function interopSummary() {
  const rows = [...new Set(interop.map(toolOf))].map((tool) => {
    const cells = interop.filter((cell) => toolOf(cell) === tool);
    const passed = cells.filter(({ result }) => result.startsWith('passed')).length;
    return [tool, cells.length, passed, cells.length - passed];
  });
  return [
    '# Results against real peers',
    '',
    '`npm run test:interop` runs this software against Linux tools in emulated guests. This page counts its tests for each tool.',
    '`npm run interop:table` writes [results.json](../test/interop/results.json), with one row for each test. The documentation site shows all rows.',
    '',
    ...table(['peer', 'tests', 'passed', 'not passed'], rows),
  ].join('\n');
}

function interopTable() {
  return [
    '# All results against real peers',
    '',
    'Each row is one test of `npm run test:interop`.',
    '',
    ...table(
      ['peer', 'our role', 'IP', 'MTU', 'what', 'result', 'day'],
      interop.map(({ peer, role, ip, mtu, what, result, day }) => [peer, role, ip, mtu, what, result, day]),
    ),
  ].join('\n');
}

const VERDICTS = ['passed', 'failed', 'differs', 'cannot tell', 'not supported'];

/** Rules whose verdict is `failed` or `differs`. */
const brokenBy = (/** @type {Result} */ { verdicts }) =>
  Object.keys(verdicts).filter((id) => verdicts[id] === 'failed' || verdicts[id] === 'differs');

function conformanceSummary() {
  const { results } = conformance;
  return [
    '# Conformance results',
    '',
    'This page counts the verdicts of `rocev2 conform run` for our own engines and for Linux Soft-RoCE. [conformance.md](conformance.md) explains verdicts and rules.',
    '`npm run conform:table` writes [results.json](../test/conform/results.json), with the packets of each deviation. The documentation site shows them.',
    '',
    ...table(
      ['target', ...VERDICTS, 'rules with a deviation'],
      results.map((result) => [
        result.name,
        ...VERDICTS.map((verdict) => result.counts[verdict]),
        brokenBy(result).join(', ') || 'none',
      ]),
    ),
    'Recovery schemes other than go-back-n deviate from the standard by design: they work only between two endpoints of this software.',
    '',
  ].join('\n');
}

function conformanceTable() {
  const { rules, results } = conformance;
  return [
    '# All conformance results',
    '',
    'The verdict on a rule is that of its worst case. [Conformance](../../../packages/inspect/docs/conformance.md) explains verdicts and rules.',
    '',
    ...table(
      ['rule', 'level', 'requirement', ...results.map(({ name }) => name)],
      rules.map(({ id, severity, title }) => [
        id,
        severity,
        title,
        ...results.map(({ verdicts }) => verdicts[id] ?? ''),
      ]),
    ),
    '## Deviations, with their packets',
    '',
    'PSNs in sentences count from the first request of a connection.',
    '',
    ...results.flatMap(({ name, deviations }) => [
      `### ${name}`,
      '',
      ...(deviations.length === 0 ? ['None.', ''] : deviations.flatMap(deviationText)),
    ]),
  ].join('\n');
}

/** @param {Deviation} deviation */
function deviationText({ case: name, verdict, rules, severity, text, packets }) {
  return [
    `**\`${name}\`** ${verdict} (rule ${rules.join(', ')}, ${severity}): ${text}`,
    '',
    '```',
    ...packets,
    '```',
    '',
  ];
}

/** The title of the table of an aim. @param {Verdict} verdict */
function kindOf({ aim, bar }) {
  if (aim.includes('processor time')) return 'Processor time';
  return bar.startsWith('>=') ? 'Throughput' : 'Latency';
}

function aimsOfPerformance() {
  const { date, system, node, cpu, cores, crc32, reps, remark, aims } = results;
  const tables = ['Throughput', 'Latency', 'Processor time'].map((title) => [
    `### ${title}`,
    '',
    ...verdictLines(aims.filter((verdict) => kindOf(verdict) === title)),
    '',
  ]);
  return [
    `Measured on ${date}, in ${reps} repetitions, on ${cores} cores of ${cpu}. The system is ${system} with Node.js ${node}. CRC-32 is by ${crc32} unless a row names another.${remark === undefined ? '' : ` ${remark}`}`,
    '',
    reachedText(aims),
    '',
    ...tables.flat(),
  ].join('\n');
}

/** The median of an aim, or that it was not measured. @param {readonly [aim: string, by: string]} wanted */
function medianOf([aim, by]) {
  const found = results.aims.find((row) => row.aim === aim && row.by === by);
  if (found === undefined) throw new Error(`bench/aims/results.json has no row '${aim}', by '${by}'`);
  return found.now === null ? 'not measured' : short(found.now.median);
}

/** An aim of disks. @param {string} kind @param {string} operation @param {string} block @param {number} depth @returns {readonly [string, string]} */
const diskAim = (kind, operation, block, depth) => [
  `${kind}, ${operation} of ${block}, depth ${depth}, p50 relative to our TCP transport`,
  `rand${operation} ${block}, depth ${depth}, rdma`,
];

function disksOfGuide() {
  const rows = [1, 16].flatMap((depth) =>
    ['8 KiB', '1 MiB'].flatMap((block) =>
      ['read', 'write'].map((operation) => [
        `${operation} ${block}`,
        depth,
        ...['disk', 'disk over UDP'].map((kind) => medianOf(diskAim(kind, operation, block, depth))),
      ]),
    ),
  );
  return table(['request', 'depth', 'shared memory', 'UDP'], rows).join('\n');
}

const NOT_SPINNING = 'relative to node:net, not spinning';
/** Rows of the README: what, compared with what, and the aims over UDP and over shared memory. @type {readonly (readonly [string, string, readonly [string, string], readonly [string, string] | undefined])[]} */
const README_ROWS = [
  [
    '64 B message, round trip time',
    '`node:net`',
    [`64 B SEND round trip ${NOT_SPINNING}`, 'mmsg/inline'],
    [`shared memory: 64 B SEND round trip ${NOT_SPINNING}`, 'shm/inline'],
  ],
  [
    'one-sided READ of 4 KiB, time',
    'a round trip of `node:net`',
    ['one-sided READ of 4 KiB relative to a round trip of node:net, not spinning', 'mmsg/inline'],
    undefined,
  ],
  [
    'WRITEs of 4 MiB, throughput',
    '`node:net`, framed',
    ['WRITE of 4 MiB relative to framed node:net, libdeflate or ISA-L, steady state', 'mmsg/inline'],
    ['mapped regions: WRITE of 4 MiB relative to framed node:net, steady state', 'mapped/inline'],
  ],
  [
    'disk read of 8 KiB, median time',
    'the same disk over our TCP transport',
    diskAim('disk over UDP', 'read', '8 KiB', 1),
    diskAim('disk', 'read', '8 KiB', 1),
  ],
  [
    'disk write of 1 MiB, median time',
    'the same disk over our TCP transport',
    diskAim('disk over UDP', 'write', '1 MiB', 1),
    diskAim('disk', 'write', '1 MiB', 1),
  ],
];

function speedOfReadme() {
  return table(
    ['operation', 'compared with', 'over UDP', 'over shared memory'],
    README_ROWS.map(([what, comparedWith, udp, shm]) => [
      what,
      comparedWith,
      medianOf(udp),
      shm === undefined ? 'not measured' : medianOf(shm),
    ]),
  ).join('\n');
}

/** @typedef {{ kind: string, readers: number, load: string, isBlocked: boolean, getsPerSecond: number, p50Us: number, p99Us: number }} KvCell */

const kv = /** @type {{ date: string, cpu: string, cores: number, node: string, cells: KvCell[] }} */ (
  JSON.parse(read('bench/kv/results.json'))
);

function speedOfKv() {
  const whole = (/** @type {number} */ value) => Math.round(value).toLocaleString('en');
  const cell = (/** @type {Partial<KvCell>} */ wanted) => {
    const found = kv.cells.find((one) => Object.entries(wanted).every(([name, value]) => one[name] === value));
    if (found === undefined) throw new Error(`no result of ${JSON.stringify(wanted)}`);
    const { load, getsPerSecond, p50Us, p99Us } = found;
    return load === 'paced' ? `${whole(p50Us)}, ${whole(p99Us)}` : whole(getsPerSecond);
  };
  const rows = [
    ['1 reader, 500 GETs/s: p50, p99 in us', { readers: 1, load: 'paced' }],
    ['1 reader, 32 in flight: GETs/s', { readers: 1, load: 'full' }],
    ['8 readers, 32 in flight each: GETs/s', { readers: 8, load: 'full' }],
  ];
  const columns = ['kv', 'ioredis'].flatMap((kind) => [false, true].map((isBlocked) => ({ kind, isBlocked })));
  return [
    `Measured on ${kv.date} with ${kv.cores} cores of an ${kv.cpu} and Node.js ${kv.node.slice(1)}. Values have 100 bytes, and 95 % of the operations are GETs.`,
    '',
    ...table(
      ['readers, GETs', '`@rocev2/kv`, owner idle', 'owner blocked', 'Redis by ioredis, owner idle', 'owner blocked'],
      rows.map(([what, wanted]) => [what, ...columns.map((column) => cell({ ...wanted, ...column }))]),
    ),
  ].join('\n');
}

const pages = /** @type {const} */ ([
  ['docs/interop-results.md', wrap(interopSummary())],
  ['packages/inspect/docs/conformance-results.md', wrap(conformanceSummary())],
  ['docs/performance.md', wrap(withRegion(read('docs/performance.md'), 'the tables of aims', aimsOfPerformance()))],
  [
    'docs/how-to/serve-a-disk.md',
    wrap(withRegion(read('docs/how-to/serve-a-disk.md'), 'the table of disks', disksOfGuide())),
  ],
  ['packages/kv/docs/kv.md', wrap(withRegion(read('packages/kv/docs/kv.md'), 'the table of speed', speedOfKv()))],
  ['README.md', wrap(withRegion(read('README.md'), 'the table of speed', speedOfReadme()))],
]);
if (process.argv.includes('--site')) {
  mkdirSync(new URL('scripts/site/results/', root), { recursive: true });
  writeFileSync(new URL('scripts/site/results/interop.md', root), interopTable());
  writeFileSync(new URL('scripts/site/results/conformance.md', root), conformanceTable());
} else if (!process.argv.includes('--check')) {
  for (const [page, text] of pages) writeFileSync(new URL(page, root), text);
} else {
  for (const [page] of pages.filter(([page, text]) => read(page) !== text)) {
    console.error(`${page} is not what the results say: node scripts/results-doc.js`);
    process.exitCode = 1;
  }
}
