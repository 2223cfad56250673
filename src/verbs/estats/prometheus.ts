/**
 * The telemetry in the text format of Prometheus, version 0.0.4. Latency is by operation, status and stage; never by
 * connection, whose number is not bounded: those are in the JSON document.
 */

import { NS_PER_S } from '../../core/units.js';
import { COUNTER_TEXTS } from '../../memory/ring/counter-texts.js';
import { COUNTER_NAMES } from '../../memory/ring/counters.js';
import type { Estats } from './estats.js';
import { OCTAVE_BOUNDS_NS, type OctaveSeries, OctaveTotals } from './octave-totals.js';

/** Media type of {@link prometheusMetrics}. */
export const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const LATENCY = 'roce_op_latency_seconds';

export function prometheusMetrics(estats: Estats): () => string {
  const totals = new OctaveTotals();
  estats.onWindow = (window) => totals.addWindow(window.groups);
  return () => {
    const { groups } = estats.currentWindow(); // First: it may close the one before, which then is in the totals.
    const upToNow = totals.copy();
    upToNow.addWindow(groups);
    const counters = estats.counters();
    return [
      metric(LATENCY, 'histogram', 'Latency of work requests by stage between T1 (posted) and T6 (polled).', [
        ...[...upToNow.series].flatMap(latencyLines),
      ]),
      ...COUNTER_NAMES.map((name) => {
        const full = `roce_${name}_total`;
        return metric(full, 'counter', COUNTER_TEXTS[name], [`${full} ${counters[name]}`]);
      }),
      gauge('roce_watched_qps', 'RC queue pairs open.', [...estats.connections].length),
      gauge('roce_estats_groups', 'Latency groups in use.', estats.groups.size),
    ].join('\n');
  };
}

function metric(name: string, type: string, help: string, lines: readonly string[]): string {
  return [`# HELP ${name} ${help.replaceAll('\\', '\\\\')}`, `# TYPE ${name} ${type}`, ...lines, ''].join('\n');
}

function gauge(name: string, help: string, value: number): string {
  return metric(name, 'gauge', help, [`${name} ${value}`]);
}

function latencyLines({ op, status, stage, counts, count, sumNs }: OctaveSeries): string[] {
  const labels = `op="${op}",status="${status}",stage="${stage}"`;
  let below = 0;
  const buckets = OCTAVE_BOUNDS_NS.map((boundNs, i) => {
    below += counts[i];
    return `${LATENCY}_bucket{le="${boundNs / NS_PER_S}",${labels}} ${below}`;
  });
  return [
    ...buckets,
    `${LATENCY}_bucket{le="+Inf",${labels}} ${count}`,
    `${LATENCY}_sum{${labels}} ${sumNs / NS_PER_S}`,
    `${LATENCY}_count{${labels}} ${count}`,
  ];
}
