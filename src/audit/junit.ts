/** Results as JUnit XML: one test case a rule. What cannot be told, or was not seen, is a skipped case. */

import { ruleOf } from './catalogue.js';
import type { Finding, RuleResult } from './ledger.js';

/** The document as text. `path`: the capture. */
export function junitReport(results: readonly RuleResult[], findings: readonly Finding[], path: string): string {
  const cases = results.map((result) => testCase(result, findings));
  const failures = results.filter(({ verdict }) => verdict === 'violation').length;
  const skipped = results.filter(({ verdict }) => verdict === 'cannot tell' || verdict === 'not seen').length;
  const counts = `tests="${results.length}" failures="${failures}" errors="0" skipped="${skipped}"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${counts}>`,
    `  <testsuite name="${escaped(path)}" ${counts}>`,
    ...cases,
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}

function testCase({ rule, verdict, passed }: RuleResult, findings: readonly Finding[]): string {
  const { title, severity } = ruleOf(rule)!;
  const head = `    <testcase classname="rocev2 audit" name="${rule} ${escaped(title)}"`;
  if (verdict === 'pass') return `${head} assertions="${passed}"/>`;
  if (verdict !== 'violation') return `${head}>\n      <skipped message="${verdict}"/>\n    </testcase>`;
  const lines = findings
    .filter((finding) => finding.rule === rule && finding.verdict === 'violation')
    .map(({ packets, flow, text }) => escaped(`packets ${packets.join(', ')}: ${flow}: ${text}`));
  return `${head}>\n      <failure type="${severity}" message="${escaped(title)}">${lines.join('\n')}</failure>\n    </testcase>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
