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
const active = (id, conform) => (conform ? casesOf(id).join(', ') || 'planned' : 'none');

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
