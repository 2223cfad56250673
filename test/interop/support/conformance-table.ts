/** packages/inspect/docs/conformance-results.md, written from the results of a run. */

import { RULES } from '../../../packages/inspect/src/audit/catalogue.js';
import { packetLines } from '../../../packages/inspect/src/commands/conform/packet-table.js';
import { type ConformRunResult, verdictOn } from '../../../packages/inspect/src/commands/conform/result.js';

/** The page. A column for each result, in their order. */
export function conformanceTable(results: readonly ConformRunResult[]): string {
  const row = (cells: readonly string[]) => `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`;
  const columns = ['rule', 'level', 'what it asks for', ...results.map(({ name }) => name)];
  const rules = RULES.filter(({ id }) => results.some(({ cases }) => verdictOn(id, cases) !== undefined));
  const counts = (verdict: keyof ConformRunResult['counts']) => results.map((result) => `${result.counts[verdict]}`);
  return [
    '# Conformance results',
    '',
    'Written by `npm run conform:table`: the cases of `rocev2 conform run` against ourselves, and against Linux Soft-RoCE in a guest, by the agent,',
    'by `rping -s -P` and by `ib_write_bw`. [conformance.md](conformance.md) has the rules, and says what the verdicts mean. The verdict on a rule is that of its',
    'worst case.',
    '',
    row(['cases', ...results.map(({ name }) => name)]),
    `|${'---|'.repeat(results.length + 1)}`,
    ...(['passed', 'failed', 'differs', 'cannot tell', 'not supported'] as const).map((verdict) =>
      row([verdict, ...counts(verdict)]),
    ),
    '',
    row(columns),
    `|${'---|'.repeat(columns.length)}`,
    ...rules.map(({ id, severity, title }) =>
      row([`${id}`, severity, title, ...results.map(({ cases }) => verdictOn(id, cases) ?? '')]),
    ),
    '',
    '## Deviations, with their packets',
    '',
    'PSNs in sentences count from the first request of a connection.',
    '',
    ...results.flatMap(deviationsOf),
  ].join('\n');
}

function deviationsOf({ name, cases }: ConformRunResult): string[] {
  const failed = cases.filter(({ verdict }) => verdict === 'failed' || verdict === 'differs');
  if (failed.length === 0) return [`### ${name}`, '', 'None.', ''];
  return [
    `### ${name}`,
    '',
    ...failed.flatMap(({ name: title, verdict, rules, severity, about, text, packets, attempts }) => [
      `**\`${title}\`** ${verdict} (rule ${rules.join(', ')}, ${severity}): ${about} ${text}.`,
      '',
      '```',
      // The attempts are alike: the first one shows what happens.
      packetLines(packets.slice(0, Math.ceil(packets.length / attempts))),
      '```',
      '',
    ]),
  ];
}
