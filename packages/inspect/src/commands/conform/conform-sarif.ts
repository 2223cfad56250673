import { sarifDocument } from '../../audit/sarif.js';
import type { CaseResult } from '../../conform/tester.js';

export function sarifReport(cases: readonly CaseResult[], target: string, version: string): string {
  const results = cases
    .filter(({ verdict }) => verdict === 'failed')
    .map(({ name, rules, text, packets }) => ({
      rule: rules[0],
      text: `${name}: ${text}`,
      uri: target,
      place: { name, kind: 'testcase' },
      packets: packets.map(({ number }) => number),
    }));
  return sarifDocument('rocev2 conform', version, results);
}
