/** Findings as SARIF 2.1.0 (OASIS), which code hosts and CI systems show. */

import { ruleOf } from './catalogue.js';
import type { Finding } from './ledger.js';
import type { Rule, Severity } from './rule.js';

const LEVELS: Readonly<Record<Severity, string>> = { must: 'error', should: 'warning', information: 'note' };

export interface SarifResult {
  readonly rule: number;
  readonly text: string;
  readonly uri: string;
  readonly place: { readonly name: string; readonly kind: string };
  readonly packets: readonly number[];
}

export function sarifDocument(tool: string, version: string, results: readonly SarifResult[]): string {
  const rules = [...new Set(results.map(({ rule }) => rule))].map((id) => ruleOf(id)!);
  const document = {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: tool, version, rules: rules.map(sarifRule) } },
        results: results.map(({ rule, text, uri, place, packets }) => ({
          ruleId: sarifId(rule),
          level: LEVELS[ruleOf(rule)!.severity],
          message: { text },
          locations: [{ physicalLocation: { artifactLocation: { uri } }, logicalLocations: [place] }],
          properties: { packets },
        })),
      },
    ],
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

export function sarifReport(findings: readonly Finding[], path: string, version: string): string {
  const violations = findings.filter(({ verdict }) => verdict === 'violation');
  return sarifDocument(
    'rocev2 audit',
    version,
    violations.map(({ rule, flow, packets, text }) => ({
      rule,
      text: `${flow}, packets ${packets.join(', ')}: ${text}`,
      uri: path,
      place: { name: flow, kind: 'flow' },
      packets,
    })),
  );
}

function sarifRule({ id, title, source, severity }: Rule) {
  return {
    id: sarifId(id),
    shortDescription: { text: title },
    help: { text: `Source: ${source}. docs/rules.md lists all rules.` },
    defaultConfiguration: { level: LEVELS[severity] },
  };
}

function sarifId(rule: number): string {
  return `ROCE${String(rule).padStart(3, '0')}`;
}
