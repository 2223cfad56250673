import { counted, leftAligned, type Output, rightAligned } from '@rocev2/command';
import { formatNs, formatRate } from 'rocev2/internal/core';
import type { AuditReport } from '../../audit/audit.js';
import { ruleOf } from '../../audit/catalogue.js';
import type { Finding, RuleResult, Verdict } from '../../audit/ledger.js';
import type { MeasureUnit } from '../../audit/measures.js';
import type { Rule } from '../../audit/rule.js';

/** Findings of one rule and verdict that are printed; --json has up to 100. */
const FINDINGS_SHOWN = 5;

export function printReport(output: Output, report: AuditReport): void {
  const violations = report.rules.filter(({ verdict }) => verdict === 'violation');
  const untold = report.rules.filter(({ cannotTell }) => cannotTell > 0);
  for (const result of violations) printFindings(output, result, report.findings, 'violation');
  for (const result of untold) printFindings(output, result, report.findings, 'cannot tell');
  output.table(
    [
      ...rightAligned('Rule'),
      ...leftAligned('Level', 'Verdict'),
      ...rightAligned('Kept', 'Broken', 'Cannot tell'),
      ...leftAligned('What it asks for'),
    ],
    report.rules
      .filter(({ verdict }) => verdict !== 'not seen')
      .map((result) => [
        result.rule,
        ruleOf(result.rule)!.severity,
        colored(output, result.verdict),
        result.passed,
        result.violations,
        result.cannotTell,
        ruleOf(result.rule)!.title,
      ]),
  );
  output.line();
  const unseen = report.rules.filter(({ verdict }) => verdict === 'not seen').map(({ rule }) => rule);
  if (unseen.length > 0) output.line(`No case of rules ${unseen.join(', ')}.`);
  printMeasures(output, report);
  printPackets(output, report);
}

export function printRule(output: Output, { id, title, source, severity, audit, how }: Rule): void {
  output.line(`Rule ${id} (${severity}): ${title}`);
  output.line(`Source: ${source}`);
  const words = {
    judged: 'judges',
    measured: 'reports observations, without a verdict',
    active: 'does not check it',
  };
  output.line(`Audit ${words[audit]}: ${how}.`);
}

function printFindings(output: Output, result: RuleResult, all: readonly Finding[], verdict: Finding['verdict']): void {
  const { title, source, severity } = ruleOf(result.rule)!;
  const findings = all.filter((finding) => finding.rule === result.rule && finding.verdict === verdict);
  const { colors } = output;
  const isViolation = verdict === 'violation';
  const count = isViolation ? counted(result.violations, 'time') : counted(result.cannotTell, 'time');
  const head = `Rule ${result.rule} ${isViolation ? 'broken' : 'cannot be checked'} ${count} (${severity}; ${source}): ${title}`;
  output.line(isViolation ? colors.red(head) : colors.yellow(head));
  for (const { packets, flow, text } of findings.slice(0, FINDINGS_SHOWN)) {
    const numbers = [...new Set(packets)];
    output.line(`  packet${numbers.length === 1 ? '' : 's'} ${numbers.join(', ')}, ${flow}: ${text}`);
  }
  const rest = (isViolation ? result.violations : result.cannotTell) - Math.min(findings.length, FINDINGS_SHOWN);
  if (rest > 0) output.line(`  and ${rest} more`);
  output.line();
}

function printMeasures(output: Output, { measures, choices }: AuditReport): void {
  if (measures.length > 0) {
    const cell = (value: number, unit: MeasureUnit) =>
      unit === 'ns' ? formatNs(value) : unit === 'bit/s' ? formatRate(value) : Math.round(value);
    output.line();
    output.table(
      [...leftAligned('Measured, without a verdict'), ...rightAligned('Count', 'Least', 'Median', '99 %', 'Most')],
      measures.map(({ name, unit, count, min, median, p99, max }) => [
        unit === 'ns' || unit === 'bit/s' ? name : `${name} (${unit})`,
        count,
        ...[min, median, p99, max].map((value) => cell(value, unit)),
      ]),
    );
    output.line();
  }
  for (const { rule, choice, count, packet } of choices) {
    output.line(`Rule ${rule}: ${choice}: ${counted(count, 'time')}, first in packet ${packet}.`);
  }
}

function colored({ colors }: Output, verdict: Verdict): string {
  if (verdict === 'violation') return colors.red(verdict);
  return verdict === 'cannot tell' ? colors.yellow(verdict) : verdict;
}

function printPackets(output: Output, { packets, flows, connections, unmatchedAnswers }: AuditReport): void {
  const others = packets.total - packets.roce;
  const what = [
    `${counted(packets.roce, 'RoCEv2 packet')} in ${counted(flows, 'flow')}, ${counted(connections, 'connection')} with both directions`,
    others > 0 && `${counted(others, 'other packet')} left out`,
    packets.protected > 0 && `${packets.protected} of them protected`,
    packets.tunnelled > 0 && `${packets.tunnelled} of them in tunnels or encrypted`,
    packets.unknownLink > 0 && `${packets.unknownLink} of them of link types that are not read`,
    packets.roceV1 > 0 && `${packets.roceV1} of them RoCE v1`,
    packets.inseparable > 0 && `${packets.inseparable} of them merged by segmentation offload, without their ends`,
    packets.merged > 0 &&
      `${counted(packets.merged, 'packet')} of the file with several that segmentation offload has merged`,
    packets.cut > 0 && `${packets.cut} captured too short`,
    packets.unsound > 0 && `${packets.unsound} that a receiver drops`,
    packets.foreign > 0 && `${packets.foreign} of opcodes that are not read`,
    unmatchedAnswers > 0 && `${counted(unmatchedAnswers, 'answer')} without known requests`,
  ];
  output.line(`${what.filter(Boolean).join(', ')}.`);
}
