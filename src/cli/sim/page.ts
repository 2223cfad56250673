/** A scenario's result as one HTML page that stands alone: the figures as SVG, and the tables. */

import { formatBytes, formatNs, formatRate } from '../../core/units.js';
import type { ScenarioResult, Series } from '../../sim/scenario/result.js';
import { type ChartPanel, escapeXml, renderLineChart } from '../svg-chart.js';
import { FLOW_COLUMNS, flowRow, QUEUE_COLUMNS, queueRow, summaryLines } from './tables.js';

/** Lines in a figure; more of them say nothing. */
const LINES_MAX = 10;

const STYLE = `
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;max-width:960px;margin:2rem auto;padding:0 1rem;color:#1c1917;background:#fff}
svg{max-width:100%;height:auto}
table{border-collapse:collapse;margin:1rem 0;font-size:13px}
th,td{padding:.2rem .8rem;text-align:right;border-bottom:1px solid #e7e5e4}
th:first-child,td:first-child{text-align:left}
.failed{color:#be123c;font-weight:600}
code{font-size:13px}
@media (prefers-color-scheme:dark){body{color:#f5f5f4;background:#161412}th,td{border-color:#3a3633}.failed{color:#fb7185}}
`;

export function scenarioPage(result: ScenarioResult, command: string): string {
  const { title, scenario, assertions, flows, queues } = result;
  const used = queues.filter(({ maxBytes }) => maxBytes > 0);
  return [
    '<!doctype html>',
    '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
    `<title>${escapeXml(scenario)}</title><style>${STYLE}</style></head><body>`,
    `<h1>${escapeXml(title === '' ? scenario : title)}</h1>`,
    `<p><code>${escapeXml(command)}</code></p>`,
    `<ul>${summaryLines(result)
      .map(({ label, text }) => `<li>${escapeXml(label)}: ${escapeXml(text)}</li>`)
      .join('')}</ul>`,
    scenarioChart(result),
    assertions.length === 0 ? '' : '<h2>Assertions</h2>',
    ...assertions.map(
      ({ name, ok, detail }) =>
        `<p${ok ? '' : ' class="failed"'}>${ok ? '✓' : '✗'} ${escapeXml(name)}: ${escapeXml(detail)}</p>`,
    ),
    '<h2>Flows</h2>',
    table(
      FLOW_COLUMNS.map(({ title: name }) => name),
      flows.slice(0, 200).map(flowRow),
    ),
    flows.length > 200 ? `<p>and ${flows.length - 200} more</p>` : '',
    '<h2>Egress queues</h2>',
    table(
      QUEUE_COLUMNS.map(({ title: name }) => name),
      used.map(queueRow),
    ),
    '</body></html>',
    '',
  ].join('\n');
}

function table(titles: readonly string[], rows: ReadonlyArray<readonly (string | number)[]>): string {
  const line = (cells: readonly (string | number)[], tag: string) =>
    `<tr>${cells.map((cell) => `<${tag}>${escapeXml(String(cell))}</${tag}>`).join('')}</tr>`;
  return `<table>${line(titles, 'th')}${rows.map((row) => line(row, 'td')).join('')}</table>`;
}

/** Queues, rates and signals over time, as SVG. */
export function scenarioChart({ title, scenario, seed, series, summary, queues }: ScenarioResult): string {
  const fullest = [...queues]
    .sort((a, b) => b.meanBytes - a.meanBytes)
    .filter(({ port }) => port in series.queueBytes)
    .slice(0, 4);
  const panels: ChartPanel[] = [
    {
      yLabel: 'Queue (KB)',
      series: fullest.map(({ port }) => ({ name: port, values: series.queueBytes[port].map((bytes) => bytes / 1000) })),
    },
    {
      yLabel: 'Rate (Gb/s)',
      series: series.rateBps
        .slice(0, LINES_MAX)
        .map((values, i) => ({ name: `flow ${i}`, values: values.map((value) => value / 1e9) })),
    },
  ];
  const signals = signalsOf(series);
  if (signals.length > 0) panels.push({ yLabel: 'Signals an interval', series: signals });
  const jain = `Jain ${summary.jain.toFixed(3)}`;
  return renderLineChart({
    title: title === '' ? scenario : title,
    subtitle: `${scenario}, seed ${seed}: ${formatRate(summary.goodputBps)}, ${jain}, queue ${formatBytes(Math.round(summary.queueMeanBytes))} mean, over ${formatNs(series.timeNs.at(-1) ?? 0)}`,
    xLabel: 'Time (ms)',
    x: series.timeNs.map((ns) => ns / 1e6),
    panels: panels.filter((panel) => panel.series.length > 0),
  });
}

function signalsOf({ cnps, pauseFrames }: Series): ChartPanel['series'] {
  return [
    { name: 'CNPs', values: cnps },
    { name: 'pause frames', values: pauseFrames },
  ].filter(({ values }) => values.some((value) => value > 0));
}
