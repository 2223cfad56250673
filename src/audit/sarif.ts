/** Findings as SARIF 2.1.0 (OASIS), which code hosts and CI systems show. */

import { ruleOf } from './catalogue.js';
import type { Finding } from './ledger.js';
import type { Rule, Severity } from './rule.js';

const LEVELS: Readonly<Record<Severity, string>> = { must: 'error', should: 'warning', information: 'note' };

/** The document as text. `path`: the capture; `version`: of rocev2. Findings that cannot be told are left out. */
export function sarifReport(findings: readonly Finding[], path: string, version: string): string {
  const violations = findings.filter(({ verdict }) => verdict === 'violation');
  const rules = [...new Set(violations.map(({ rule }) => rule))].map((id) => ruleOf(id)!);
  const document = {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'rocev2 audit', version, rules: rules.map(sarifRule) } },
        results: violations.map((finding) => ({
          ruleId: sarifId(finding.rule),
          level: LEVELS[ruleOf(finding.rule)!.severity],
          message: { text: `${finding.flow}, packets ${finding.packets.join(', ')}: ${finding.text}` },
          locations: [
            {
              physicalLocation: { artifactLocation: { uri: path } },
              logicalLocations: [{ name: finding.flow, kind: 'flow' }],
            },
          ],
          properties: { packets: finding.packets },
        })),
      },
    ],
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function sarifRule({ id, title, source, severity }: Rule) {
  return {
    id: sarifId(id),
    shortDescription: { text: title },
    help: { text: `Source: ${source}. docs/conformance.md has all rules.` },
    defaultConfiguration: { level: LEVELS[severity] },
  };
}

function sarifId(rule: number): string {
  return `ROCE${String(rule).padStart(3, '0')}`;
}
