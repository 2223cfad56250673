// Writes packages/inspect/docs/rules.md from the catalogue and the cases of packages/inspect, as built: `npm run build && node scripts/conformance-doc.js`.
// With --check it only says whether the page is what it would write.
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { JUDGED_RULES, RULE_SECTIONS, RULES } from '../build/packages/inspect/src/audit/catalogue.js';
import { CASES, TESTED_RULES } from '../build/packages/inspect/src/conform/cases.js';
import { wrap } from './wrap.js';

const page = new URL('../packages/inspect/docs/rules.md', import.meta.url);
const HEAD = `# Rules of RoCEv2

This page lists the rules that \`rocev2 audit\` and \`rocev2 conform\` check, with the source of each.
[conformance.md](conformance.md) shows how to use these commands.

CA17-n is a compliance statement of annex A17 (RoCEv2) of the InfiniBand Architecture Specification. Cn-m is one of volume 1, and a number such as 9.7.5 is one
of its sections. *Class A* to *class J* are its classes of responder errors. *rxe* is Linux Soft-RoCE. *Lumina* (SIGCOMM 2023) is a test tool. *ReDMArk* and
*NeVerMore* are studies of security. *IRN* and *DCP* are studies of recovery.

The column of cases names the cases of \`conform\`. *Not tested* gives the reason. *None* means that ordinary traffic shows the rule, and audit checks it.
`;

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
    'an off-path packet equals one of the peer, so a target cannot treat it in another way. docs/security.md describes how many guesses a forged one takes',
  ],
  [105, '10,000 REQs load a host that may serve others; no case sends more than some dozen packets'],
  [106, '100,000 packets do so as well, and a second queue pair is needed to see that it is untouched'],
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
    `## ${title}`,
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
const summary = `Of ${RULES.length} rules, audit checks ${JUDGED_RULES.length} (${musts} of level must) and measures ${count(RULES, ({ audit }) => audit === 'measured')} more. The other
${count(RULES, ({ audit }) => audit === 'active')} need a tester. \`rocev2 conform run\` tests ${TESTED_RULES.length} rules by ${CASES.length} cases.
`;

const text = wrap([HEAD, summary, ...sections].join('\n'));
if (!process.argv.includes('--check')) writeFileSync(page, text);
else if (readFileSync(page, 'utf8') !== text) {
  console.error(
    'packages/inspect/docs/rules.md is not what the catalogue says: npm run build && node scripts/conformance-doc.js',
  );
  process.exitCode = 1;
}
