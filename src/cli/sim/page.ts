/** A scenario's result as one HTML page that stands alone: the figures as SVG, and the tables. */

import { formatBytes, formatNs, formatRate } from '../../core/units.js';
import type { ScenarioResult, Series } from '../../sim/scenario/result.js';
import { htmlPage, htmlTable } from '../html-page.js';
import { type ChartPanel, escapeXml, renderLineChart } from '../svg-chart.js';
import { FLOW_COLUMNS, flowRow, isTelling, QUEUE_COLUMNS, queueRow, summaryLines } from './tables.js';

/** Lines in a figure; more of them say nothing. */
const LINES_MAX = 10;
/** Flows in the table. */
const FLOWS_MAX = 200;

/** `command` made it. */
export function scenarioPage(result: ScenarioResult, command: string): string {
  const { title, scenario } = result;
  return htmlPage(scenario, [
    `<h1>${escapeXml(title === '' ? scenario : title)}</h1>`,
    `<p><code>${escapeXml(command)}</code></p>`,
    ...scenarioBody(result, 2),
  ]);
}

/** Figures and tables without the page around them; headings are of this level. */
export function scenarioBody(result: ScenarioResult, level: 2 | 3): string[] {
  const { assertions, flows, queues } = result;
  const used = queues.filter(isTelling);
  const heading = (text: string) => `<h${level}>${text}</h${level}>`;
  return [
    `<ul>${summaryLines(result)
      .map(({ label, text }) => `<li>${escapeXml(label)}: ${escapeXml(text)}</li>`)
      .join('')}</ul>`,
    scenarioChart(result),
    assertions.length === 0 ? '' : heading('Assertions'),
    ...assertions.map(
      ({ name, ok, detail }) =>
        `<p${ok ? '' : ' class="failed"'}>${ok ? '✓' : '✗'} ${escapeXml(name)}: ${escapeXml(detail)}</p>`,
    ),
    heading('Flows'),
    htmlTable(
      FLOW_COLUMNS.map(({ title: name }) => name),
      flows.slice(0, FLOWS_MAX).map(flowRow),
    ),
    flows.length > FLOWS_MAX ? `<p>and ${flows.length - FLOWS_MAX} more</p>` : '',
    heading('Egress queues'),
    htmlTable(
      QUEUE_COLUMNS.map(({ title: name }) => name),
      used.map(queueRow),
    ),
  ];
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
