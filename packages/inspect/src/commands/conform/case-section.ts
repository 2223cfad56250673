import { escapeXml } from '@rocev2/command/plot';
import type { CaseResult, CaseVerdict } from '../../conform/tester.js';
import { packetLines } from './packet-table.js';

const CLASSES: Readonly<Record<CaseVerdict, string>> = {
  passed: 'passed',
  failed: 'failed',
  differs: 'unsure',
  'cannot tell': 'unsure',
  'not supported': 'origin',
};

export function verdictHtml(verdict: CaseVerdict): string {
  return `<span class="${CLASSES[verdict]}">${verdict}</span>`;
}

export function caseSection(result: CaseResult, anchor: string): string[] {
  const { name, about, verdict, text, attempts, steps, packets, rules } = result;
  const isOpen = verdict !== 'passed' && verdict !== 'not supported';
  return [
    `<section id="${anchor}"><h3><code>${escapeXml(name)}</code>: ${verdictHtml(verdict)}</h3>`,
    `<p>${escapeXml(about)} <span class="origin">Rule ${rules.join(', ')}${attempts > 1 ? `, ${attempts} attempts` : ''}.</span></p>`,
    ...(text === null ? [] : [`<p class="${CLASSES[verdict]}">${escapeXml(text)}</p>`]),
    ...(steps.length === 0
      ? []
      : [`<ol class="origin">${steps.map((step) => `<li>${escapeXml(step)}</li>`).join('')}</ol>`]),
    ...(packets.length === 0
      ? []
      : [
          `<details${isOpen ? ' open' : ''}><summary>${packets.length} packets</summary>`,
          `<pre>${escapeXml(packetLines(packets))}</pre></details>`,
        ]),
    '</section>',
  ];
}
