/** What cannot be decided, or was not seen, is a skipped case. */

import { ruleOf } from './catalogue.js';
import type { Finding, RuleResult } from './ledger.js';

export interface JunitCases {
  readonly cases: readonly string[];
  readonly failures: number;
  readonly skipped: number;
}

export function junitDocument(suite: string, { cases, failures, skipped }: JunitCases): string {
  const counts = `tests="${cases.length}" failures="${failures}" errors="0" skipped="${skipped}"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${counts}>`,
    `  <testsuite name="${xmlText(suite)}" ${counts}>`,
    ...cases,
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}

export function junitReport(results: readonly RuleResult[], findings: readonly Finding[], path: string): string {
  return junitDocument(path, {
    cases: results.map((result) => testCase(result, findings)),
    failures: results.filter(({ verdict }) => verdict === 'violation').length,
    skipped: results.filter(({ verdict }) => verdict === 'cannot tell' || verdict === 'not seen').length,
  });
}

function testCase({ rule, verdict, passed }: RuleResult, findings: readonly Finding[]): string {
  const { title, severity } = ruleOf(rule)!;
  const head = `    <testcase classname="rocev2 audit" name="${rule} ${xmlText(title)}"`;
  if (verdict === 'pass') return `${head} assertions="${passed}"/>`;
  if (verdict !== 'violation') return `${head}>\n      <skipped message="${verdict}"/>\n    </testcase>`;
  const lines = findings
    .filter((finding) => finding.rule === rule && finding.verdict === 'violation')
    .map(({ packets, flow, text }) => xmlText(`packets ${packets.join(', ')}: ${flow}: ${text}`));
  return `${head}>\n      <failure type="${severity}" message="${xmlText(title)}">${lines.join('\n')}</failure>\n    </testcase>`;
}

export function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
