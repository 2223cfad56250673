import { type ChartPanel, escapeXml, htmlPage, htmlTable, renderLineChart, verdictMarkup } from '@rocev2/command/plot';
import { formatBytes, formatNs, formatRate } from 'rocev2/internal/core';
import type { FlowResult, ScenarioResult, Series } from '../../sim/scenario/result.js';
import { SMALL_FLOW_BYTES } from '../../sim/scenario/scenario-report.js';
import type { Scenario } from '../../sim/scenario/schema.js';
import { quantile } from '../../sim/statistics.js';
import {
  BUFFER_COLUMNS,
  bufferRow,
  FLOW_COLUMNS,
  flowRow,
  isTelling,
  QUEUE_COLUMNS,
  queueRow,
  summaryLines,
} from './tables.js';

const LINES_MAX = 10;
const QUEUES_MAX = 4;
const FLOWS_MAX = 200;
const TOWERING = 4;
const COMPLETIONS_MIN = 50;

export function scenarioPage(result: ScenarioResult, command: string, scenario: Scenario): string {
  const { name, title, source } = scenario;
  return htmlPage(name, [
    `<h1>${escapeXml(title === '' ? name : title)}</h1>`,
    `<p><code>${escapeXml(command)}</code></p>`,
    source === '' ? '' : `<p>Source: ${escapeXml(source)}</p>`,
    ...scenarioBody(result, 2),
    `<details><summary>The scenario with all defaults, in ns, bit/s and bytes</summary><pre>${escapeXml(JSON.stringify(scenario, null, 2))}</pre></details>`,
  ]);
}

export function scenarioBody(result: ScenarioResult, level: 2 | 3): string[] {
  const { assertions, flows, queues, buffers } = result;
  const used = queues.filter(isTelling);
  const heading = (text: string) => `<h${level}>${text}</h${level}>`;
  return [
    verdictOf(result),
    `<ul>${summaryLines(result)
      .map(({ label, text }) => `<li>${escapeXml(label)}: ${escapeXml(text)}</li>`)
      .join('')}</ul>`,
    scenarioChart(result, 'Queues, rates and signals over time'),
    completionChart(result) ?? '',
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
    ...(buffers.length === 0
      ? []
      : [
          heading('Packet memory'),
          htmlTable(
            BUFFER_COLUMNS.map(({ title: name }) => name),
            buffers.map(bufferRow),
          ),
        ]),
  ];
}

function verdictOf({ assertions, summary }: ScenarioResult): string {
  const text = `Goodput is ${formatRate(summary.goodputBps)}, Jain index ${summary.jain.toFixed(3)}.`;
  const failed = assertions.filter(({ ok }) => !ok);
  if (failed.length > 0) {
    const names = failed.map(({ name }) => name).join(', ');
    return verdictMarkup({ tone: 'bad', title: `Assertions that fail: ${names}`, text });
  }
  return assertions.length > 0
    ? verdictMarkup({ tone: 'good', title: 'All assertions hold', text })
    : verdictMarkup({ tone: 'idle', title: 'The scenario has no assertions', text });
}

export function scenarioChart(result: ScenarioResult, title = result.title || result.scenario): string {
  const { scenario, seed, series, summary } = result;
  const jain = `Jain ${summary.jain.toFixed(3)}`;
  const panels = [queuePanel(result), ratePanel(result), receivedPanel(series), signalPanel(series)];
  return renderLineChart({
    title,
    subtitle: `${scenario}, seed ${seed}: ${formatRate(summary.goodputBps)}, ${jain}, queue ${formatBytes(Math.round(summary.queueMeanBytes))} mean, over ${formatNs(series.timeNs.at(-1) ?? 0)}`,
    xLabel: 'Time (ms)',
    x: series.timeNs.map((ns) => ns / 1e6),
    panels: panels.filter((panel) => panel.series.length > 0),
  });
}

function queuePanel({ queues, series, summary }: ScenarioResult): ChartPanel {
  const fullest = [...queues]
    .sort((a, b) => b.meanBytes - a.meanBytes)
    .filter(({ port }) => port in series.queueBytes)
    .slice(0, QUEUES_MAX);
  const highest = Math.max(0, ...fullest.flatMap(({ port }) => series.queueBytes[port]));
  return {
    yLabel: 'Queue (KB)',
    series: fullest.map(({ port }) => ({ name: port, values: series.queueBytes[port].map((bytes) => bytes / 1000) })),
    ...(highest > TOWERING * summary.queueP99Bytes && { logFrom: 1 }),
  };
}

function ratePanel({ flows, series }: ScenarioResult): ChartPanel {
  const isPart = flows.length > LINES_MAX;
  const largest = [...flows].sort((a, b) => b.bytes - a.bytes).slice(0, LINES_MAX);
  const all = {
    name: `mean of all ${flows.length} flows`,
    values: series.timeNs.map(
      (_, i) => series.rateBps.reduce((sum, values) => sum + values[i], 0) / flows.length / 1e9,
    ),
  };
  return {
    yLabel: isPart ? `First sent, ${LINES_MAX} of ${flows.length} flows (Gb/s)` : 'First sent (Gb/s)',
    series: [
      ...(isPart ? largest : flows).map(({ id, from, to }) => ({
        name: `${id}: ${from}>${to}`,
        values: series.rateBps[id].map((value) => value / 1e9),
      })),
      ...(isPart ? [all] : []),
    ],
  };
}

function receivedPanel({ receivedBps }: Series): ChartPanel {
  const hosts = Object.entries(receivedBps);
  const isPart = hosts.length > LINES_MAX;
  return {
    yLabel: isPart ? `Received, ${LINES_MAX} of ${hosts.length} hosts (Gb/s)` : 'Received (Gb/s)',
    series: hosts.slice(0, LINES_MAX).map(([name, values]) => ({
      name: `${name}, retransmissions included`,
      values: values.map((value) => value / 1e9),
    })),
  };
}

function signalPanel({ timeNs, cnps, pauseFrames }: Series): ChartPanel {
  const signals = [
    { name: 'CNPs', values: cnps },
    { name: 'pause frames', values: pauseFrames },
  ];
  return {
    yLabel: `Frames in ${formatNs(timeNs[0] ?? 0)}`,
    series: signals.filter(({ values }) => values.some((value) => value > 0)),
  };
}

function completionChart({ flows }: ScenarioResult): string | undefined {
  const timesOf = (some: readonly FlowResult[]) =>
    some.flatMap(({ completionNs }) => (completionNs === null ? [] : completionNs / 1e3)).sort((a, b) => a - b);
  const all = timesOf(flows);
  const small = timesOf(flows.filter(({ bytes }) => bytes < SMALL_FLOW_BYTES));
  if (all.length < COMPLETIONS_MIN) return undefined;
  const percentiles = Array.from({ length: 100 }, (_, i) => i);
  const curve = (name: string, times: readonly number[]) => ({
    name: `${name} (${times.length})`,
    values: percentiles.map((percentile) => quantile(times, percentile / 100)),
  });
  return renderLineChart({
    title: 'Completion times',
    subtitle: 'This percentage of the flows completed within this time',
    xLabel: 'Percent of flows',
    x: percentiles,
    panels: [
      {
        yLabel: 'Completed in (us)',
        logFrom: 1,
        series: [curve('all flows', all), ...(small.length > 0 ? [curve('below 100 KB', small)] : [])],
      },
    ],
  });
}
