/** packages/inspect/test/conform/results.json, made from the results of a run: `scripts/results-doc.js` renders it. */

import { RULES } from '../../../packages/inspect/src/audit/catalogue.js';
import { packetLines } from '../../../packages/inspect/src/commands/conform/packet-table.js';
import { type ConformRunResult, verdictOn } from '../../../packages/inspect/src/commands/conform/result.js';

/** The file: each tested rule, and for each result its verdicts and the packets of each deviation. */
export function conformanceResults(results: readonly ConformRunResult[]): string {
  const rules = RULES.filter(({ id }) => results.some(({ cases }) => verdictOn(id, cases) !== undefined));
  const file = {
    rules: rules.map(({ id, severity, title }) => ({ id, severity, title })),
    results: results.map((result) => ({
      name: result.name,
      counts: result.counts,
      verdicts: Object.fromEntries(rules.map(({ id }) => [id, verdictOn(id, result.cases)])),
      deviations: deviationsOf(result),
    })),
  };
  return `${JSON.stringify(file, null, 1)}\n`;
}

function deviationsOf({ cases }: ConformRunResult): object[] {
  return cases
    .filter(({ verdict }) => verdict === 'failed' || verdict === 'differs')
    .map(({ name, verdict, rules, severity, about, text, packets, attempts }) => ({
      case: name,
      verdict,
      rules,
      severity,
      text: `${about} ${text}.`,
      // The attempts are alike: the first one shows what happens.
      packets: packetLines(packets.slice(0, Math.ceil(packets.length / attempts))).split('\n'),
    }));
}
