// Writes the tables of docs/conformance.md from the catalogue of src/audit and the cases of src/conform, as built: `npm run build && node scripts/conformance-doc.js`.
// With --check it only says whether the page is what it would write.
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { JUDGED_RULES, RULE_SECTIONS, RULES } from '../dist/audit/catalogue.js';
import { CASES, TESTED_RULES } from '../dist/conform/cases.js';

const page = new URL('../docs/conformance.md', import.meta.url);
const MARK = '<!-- Below here: written by scripts/conformance-doc.js -->\n';

const AUDIT = { judged: 'yes', measured: 'measured', active: 'no' };
const cell = (text) => text.replaceAll('|', '\\|');

const casesOf = (id) => CASES.filter(({ rules }) => rules.includes(id)).map(({ name }) => `\`${name}\``);
/** What a rule without a case waits for. */
const PLANNED = new Map([
  [4, 'a target with two addresses; today one run is made over each'],
  [9, 'a port that can set the UDP checksum'],
  [17, 'a way to tell a wrong pad count from a wrong length, which the target refuses as well'],
  [39, 'a target that posts more than fits its window'],
  [41, 'a SEND queue of the target and credits that are given later'],
  [79, 'a target that binds a memory window for each connection'],
  [83, 'a target whose congestion control is known to be on'],
  [85, 'several queue pairs at a time'],
  [86, 'the configured interval of the target'],
  [88, 'a target that sends for seconds'],
  [98, 'a UD queue pair of the target, whose completions are told'],
  [99, 'a UD queue pair of the target, whose receives can be read'],
  [100, 'a UD queue pair of the target, whose completions are told'],
  [101, 'R_Keys of 64 connections'],
  [102, 'a second source address'],
  [103, 'a second source address'],
  [104, 'two queue pairs at a time'],
  [105, 'leave to load the target with 10,000 REQs'],
  [106, 'leave to send 100,000 packets, and two queue pairs at a time'],
  [109, 'two queue pairs at a time, under load'],
  [110, 'counters of the target'],
  [111, 'two queue pairs at a time, in two classes'],
]);
const active = (id, conform) => {
  if (!conform) return 'none';
  const cases = casesOf(id).join(', ');
  if ((cases === '') !== PLANNED.has(id)) throw new Error(`rule ${id} needs either a case or what it waits for`);
  return cases || `planned; needs ${PLANNED.get(id)}`;
};

const sections = RULE_SECTIONS.map(({ title, rules }) =>
  [
    `### ${title}`,
    '',
    '| # | level | rule | source | audit | what audit looks at, or why not | cases of `rocev2 conform` |',
    '|---|---|---|---|---|---|---|',
    ...rules.map(
      ({ id, severity, title: rule, source, audit, how, conform }) =>
        `| ${id} | ${severity} | ${cell(rule)} | ${cell(source)} | ${AUDIT[audit]} | ${cell(how)} | ${active(id, conform)} |`,
    ),
    '',
  ].join('\n'),
);

const count = (rules, wanted) => rules.filter(wanted).length;
const musts = JUDGED_RULES.filter(({ severity }) => severity === 'must').length;
const summary = `Of ${RULES.length} rules audit judges ${JUDGED_RULES.length} (${musts} of level must). For ${count(RULES, ({ audit }) => audit === 'measured')} more it
tells what it saw. ${count(RULES, ({ audit }) => audit === 'active')} cannot be seen in the traffic of others: somebody has to provoke them.

\`rocev2 conform run\` tests ${TESTED_RULES.length} rules by ${CASES.length} cases; for ${count(RULES, ({ id, conform }) => conform && !TESTED_RULES.includes(id))} more cases are planned.
`;

const before = readFileSync(page, 'utf8').split(MARK)[0];
const text = [`${before}${MARK}`, summary, ...sections].join('\n');
if (!process.argv.includes('--check')) writeFileSync(page, text);
else if (readFileSync(page, 'utf8') !== text) {
  console.error('docs/conformance.md is not what the catalogue says: npm run build && node scripts/conformance-doc.js');
  process.exitCode = 1;
}
