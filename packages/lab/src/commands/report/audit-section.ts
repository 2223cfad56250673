/** The document of `audit --json`, and captures: the verdict, the rules with what broke them, and a ladder. */

import { escapeXml, filled, htmlTable, type LadderConnection, ladderFigure, verdictMarkup } from '@rocev2/command/plot';
import { Audit, type AuditReport, CaptureStream } from '@rocev2/inspect';
import { CapturePackets, laddersOf, OVERVIEW_TEXTS, overviewOf, ruleOf } from '@rocev2/inspect/internal/page';
import { z } from 'zod';
import type { Section, SectionReader } from './section.js';

const ROCE_UDP_PORT = 4791;
const FINDINGS_MAX = 20;
/** Packets of a ladder. */
const RUNGS_MAX = 200;
/** Packets before the first loss. */
const BEFORE = 10;
const LADDER_PX = 920;

const documentSchema = z.looseObject({
  packets: z.looseObject({ total: z.number(), roce: z.number() }),
  connections: z.number(),
  rules: z
    .array(
      z.looseObject({
        rule: z.number(),
        verdict: z.string(),
        passed: z.number(),
        violations: z.number(),
        cannotTell: z.number(),
      }),
    )
    .min(1),
  findings: z.array(
    z.looseObject({
      rule: z.number(),
      verdict: z.string(),
      packets: z.array(z.number()),
      flow: z.string(),
      text: z.string(),
    }),
  ),
});

export const auditSection: SectionReader = (document) => {
  const { success } = documentSchema.safeParse(document);
  return success ? sectionOf('Audit', document as AuditReport) : undefined;
};

/** Rejects if the file cannot be read. */
export async function captureSection(path: string): Promise<Section> {
  const stream = await CaptureStream.open(path);
  const audit = new Audit();
  const packets = new CapturePackets(ROCE_UDP_PORT);
  for await (const chunk of stream.chunks()) {
    for (const captured of chunk) {
      audit.take(captured);
      packets.take(captured);
    }
  }
  const report = audit.report();
  const { packets: entries, remarks } = packets.entries(stream.damage);
  const section = sectionOf('Capture', report, report.packets.roce === 0 ? audit.whyNothing : undefined);
  const ladder = entries.length === 0 ? [] : ladderOf(laddersOf(entries));
  return { ...section, body: [...section.body, ...ladder, htmlList(remarks)] };
}

function sectionOf(title: string, report: AuditReport, why?: string): Section {
  const { result, tone, numbers } = overviewOf(report, why);
  const said = (key: keyof typeof OVERVIEW_TEXTS) => filled(OVERVIEW_TEXTS[key], numbers);
  const seen = report.rules.filter(({ verdict }) => verdict !== 'not seen');
  const broken = report.findings.filter(({ verdict }) => verdict === 'violation').slice(0, FINDINGS_MAX);
  return {
    title,
    measures: seen.map(({ rule, violations }) => {
      return { name: `rule ${rule}: violations`, value: violations, text: String(violations) };
    }),
    body: [
      verdictMarkup({ tone, title: said(result), text: said(`${result}.text`) }),
      htmlList(
        broken.map(({ rule, packets, flow, text }) => `Rule ${rule}, ${flow}, packets ${packets.join(', ')}: ${text}`),
      ),
      htmlTable(
        ['Rule', 'Verdict', 'Kept', 'Broken', 'Cannot tell', 'Requirement'],
        seen.map(({ rule, verdict, passed, violations, cannotTell }) => [
          rule,
          verdict,
          passed,
          violations,
          cannotTell,
          ruleOf(rule)?.title ?? '',
        ]),
      ),
    ],
  };
}

/** Of the connection with most losses and retransmissions, around the first. */
function ladderOf(connections: readonly LadderConnection[]): string[] {
  const isTrouble = ({ isLost, isRepeated, kind }: LadderConnection['packets'][number]) =>
    isLost || isRepeated || kind === 'nak';
  const troubles = connections.map(({ packets }) => packets.filter(isTrouble).length);
  const { name, ends, packets } = connections[troubles.indexOf(Math.max(...troubles))];
  const from = Math.max(0, packets.findIndex(isTrouble) - BEFORE);
  const shown = packets.slice(from, from + RUNGS_MAX);
  const part = shown.length < packets.length ? `: ${shown.length} of ${packets.length} packets` : '';
  return [`<h3>${escapeXml(`${name}${part}`)}</h3>`, ladderFigure(shown, ends, LADDER_PX)];
}

function htmlList(lines: readonly string[]): string {
  return lines.length === 0 ? '' : `<ul>${lines.map((line) => `<li>${escapeXml(line)}</li>`).join('')}</ul>`;
}
