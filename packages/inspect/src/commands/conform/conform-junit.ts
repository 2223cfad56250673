/** Results of `rocev2 conform run` as JUnit XML, one test case each. Rules without a verdict are skipped. */

import { junitDocument, xmlText } from '../../audit/junit.js';
import type { CaseResult } from '../../conform/tester.js';

export function junitReport(results: readonly CaseResult[], target: string): string {
  return junitDocument(target, {
    cases: results.map(testCase),
    failures: results.filter(({ verdict }) => verdict === 'failed').length,
    skipped: results.filter(({ verdict }) => verdict !== 'failed' && verdict !== 'passed').length,
  });
}

function testCase({ name, rules, about, verdict, severity, text, milliseconds }: CaseResult): string {
  const title = xmlText(`${name} (rule ${rules.join(', ')}): ${about}`);
  const head = `    <testcase classname="rocev2 conform" name="${title}" time="${(milliseconds / 1000).toFixed(3)}"`;
  if (verdict === 'passed') return `${head}/>`;
  const why = xmlText(text ?? '');
  if (verdict === 'failed') return `${head}>\n      <failure type="${severity}" message="${why}"/>\n    </testcase>`;
  return `${head}>\n      <skipped message="${verdict}: ${why}"/>\n    </testcase>`;
}
