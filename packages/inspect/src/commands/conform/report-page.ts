import { escapeXml, htmlPage } from '@rocev2/command/plot';
import { ruleOf } from '../../audit/catalogue.js';
import { caseSection, verdictHtml } from './case-section.js';
import { type ConformRunResult, verdictOn } from './result.js';

export function reportPage(result: ConformRunResult, version: string, date: string): string {
  const { name, remote, local, port, via, mtu, counts, cases } = result;
  const rules = [...new Set(cases.flatMap((one) => one.rules))].sort((a, b) => a - b);
  const numbered = cases.map((one, index) => ({ one, anchor: `case-${index + 1}` }));
  const ofRule = (rule: number) => numbered.filter(({ one }) => one.rules[0] === rule);
  const others = (rule: number) => numbered.filter(({ one }) => one.rules.slice(1).includes(rule));
  const summary = Object.entries(counts).map(([verdict, count]) => `${count} ${verdict}`);
  return htmlPage(`Conformance of ${name}`, [
    `<h1>Conformance of ${escapeXml(name)}</h1>`,
    `<p>${cases.length} cases: ${summary.join(', ')}.</p>`,
    `<p class="origin">rocev2 ${escapeXml(version)}, ${escapeXml(date)}. Target ${escapeXml(`${remote} port ${port}, by ${via}`)}; tester ${escapeXml(local)}; path MTU ${mtu}.
PSNs in sentences count from the first request of a connection; packet numbers are those of the capture.</p>`,
    '<table><tr><th>Rule</th><th>Level</th><th>Verdict</th><th>What it asks for</th></tr>',
    ...rules.map((rule) => {
      const { severity, title } = ruleOf(rule)!;
      return `<tr><td><a href="#rule-${rule}">${rule}</a></td><td>${severity}</td><td>${verdictHtml(verdictOn(rule, cases)!)}</td><td class="text">${escapeXml(title)}</td></tr>`;
    }),
    '</table>',
    ...rules.flatMap((rule) => {
      const { severity, title, source } = ruleOf(rule)!;
      const references = others(rule).map(
        ({ one, anchor }) => `<a href="#${anchor}"><code>${escapeXml(one.name)}</code></a>`,
      );
      return [
        `<h2 id="rule-${rule}">Rule ${rule} (${severity}): ${escapeXml(title)}</h2><p class="origin">Source: ${escapeXml(source)}</p>`,
        ...ofRule(rule).flatMap(({ one, anchor }) => caseSection(one, anchor)),
        ...(references.length === 0 ? [] : [`<p>Also checked by ${references.join(', ')}.</p>`]),
      ];
    }),
  ]);
}
