// Writes the tables of packages/inspect/docs/conformance.md from the catalogue and the cases of packages/inspect, as built: `npm run build && node scripts/conformance-doc.js`.
// With --check it only says whether the page is what it would write.
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { JUDGED_RULES, RULE_SECTIONS, RULES } from '../build/packages/inspect/src/audit/catalogue.js';
import { CASES, TESTED_RULES } from '../build/packages/inspect/src/conform/cases.js';

const page = new URL('../packages/inspect/docs/conformance.md', import.meta.url);
const MARK = '<!-- Below here: written by scripts/conformance-doc.js -->\n';

const AUDIT = { judged: 'yes', measured: 'measured', active: 'no' };
const cell = (text) => text.replaceAll('|', '\\|');

const casesOf = (id) => CASES.filter(({ rules }) => rules.includes(id)).map(({ name }) => `\`${name}\``);
/** Why a rule has no case. */
const WHY_NOT = new Map([
  [4, 'a run has one address; make one over each family, and `rocev2 conform matrix` puts them side by side'],
  [9, 'the tester sends through UDP sockets, which make the checksum themselves'],
  [17, 'the target refuses a wrong length as well, and its answer does not say which of the two it minds'],
  [
    41,
    'a target posts at most 16 SENDs at once, which the smallest credit code above 0 already covers; needs credits that are given later',
  ],
  [
    83,
    'a peer may have congestion control off, and nothing in a connection says so; `rocev2 doctor --port` sends marked packets and counts CNPs',
  ],
  [85, 'the tester has one queue pair at a time; a capture of traffic on several shows it'],
  [86, 'what was configured is known on the target alone'],
  [88, 'a case lasts a second, and a rate recovers in many; a capture of a long transfer shows it'],
  [
    98,
    'nothing answers a datagram, so that taken and dropped look the same on the wire; needs a program on the target that tells of its receives',
  ],
  [99, 'the 40 bytes never leave the memory of the target; needs a program there that shows them'],
  [100, 'as rule 98'],
  [101, 'R_Keys and PSNs of 64 connections are needed; audit judges QPNs and PSNs where RDMA CM makes them'],
  [
    102,
    'a packet from off the path is, byte for byte, one of the peer: a target cannot treat it in another way. What it takes to forge one is in docs/security.md',
  ],
  [105, '10,000 REQs load a host that may serve others; no case sends more than some dozen packets'],
  [106, '100,000 packets do so, too, and it takes a second queue pair to see that it is untouched'],
  [109, 'two queue pairs at a time, with rates that are compared: a benchmark, which another load on the host spoils'],
  [110, 'counters are read on the target, by tools of its maker, and packets do not name them'],
  [111, 'it takes two classes that fill the link together; a tester in software does not fill the link of a NIC'],
]);
const active = (id, conform) => {
  if (!conform) return 'none';
  const cases = casesOf(id).join(', ');
  if ((cases === '') !== WHY_NOT.has(id)) throw new Error(`rule ${id} needs either a case or why it has none`);
  return cases || `not tested: ${WHY_NOT.get(id)}`;
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

\`rocev2 conform run\` tests ${TESTED_RULES.length} rules by ${CASES.length} cases; for ${count(RULES, ({ id, conform }) => conform && !TESTED_RULES.includes(id))} more the tables say why it does not.
`;

const before = readFileSync(page, 'utf8').split(MARK)[0];
const text = [`${before}${MARK}`, summary, ...sections].join('\n');
if (!process.argv.includes('--check')) writeFileSync(page, text);
else if (readFileSync(page, 'utf8') !== text) {
  console.error(
    'packages/inspect/docs/conformance.md is not what the catalogue says: npm run build && node scripts/conformance-doc.js',
  );
  process.exitCode = 1;
}
