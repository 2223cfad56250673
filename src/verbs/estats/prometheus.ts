/**
 * The telemetry as Prometheus metrics. Latency is by operation, status and stage; never by connection, whose number is not bounded: those are
 * in the JSON document.
 */

import type { Metric, Registry } from 'prom-client';
import { requirePackage } from '../../core/packages.js';
import { NS_PER_S } from '../../core/units.js';
import { COUNTER_NAMES, COUNTER_TEXTS } from '../../memory/ring/counters.js';
import type { Estats } from './estats.js';
import { OCTAVE_BOUNDS_NS, type OctaveSeries, OctaveTotals } from './octave-totals.js';

const LATENCY = 'roce_op_latency_seconds';

/** Adds up this endpoint's latencies from now on. What is returned gives the text of its metrics as they are when it is called. */
export function prometheusMetrics(estats: Estats): () => Promise<MetricsText> {
  const totals = new OctaveTotals();
  estats.onWindow = (window) => totals.addWindow(window.groups);
  let registry: Registry | undefined;
  return async () => {
    registry ??= registryOf(estats, totals);
    return { contentType: registry.contentType, text: await registry.metrics() };
  };
}

/** What a scraper reads. */
export interface MetricsText {
  /** Media type, with the version of the format. */
  readonly contentType: string;
  /** In the exposition format of Prometheus. */
  readonly text: string;
}

/** A registry of this endpoint's metrics, collected when they are asked for. */
function registryOf(estats: Estats, totals: OctaveTotals): Registry {
  const { Gauge, Registry } = requirePackage<typeof import('prom-client')>('prom-client');
  const registry = new Registry();
  register(
    registry,
    LATENCY,
    'Latency of work requests by stage between T1 (posted) and T6 (polled).',
    'histogram',
    () => {
      const { groups } = estats.currentWindow(); // First: it may close the one before, which then is in the totals.
      const upToNow = totals.copy();
      upToNow.addWindow(groups);
      return [...upToNow.series].flatMap(latencyValues);
    },
  );
  for (const name of COUNTER_NAMES) {
    register(registry, `roce_${name}_total`, COUNTER_TEXTS[name], 'counter', () => [
      { value: estats.counters()[name], labels: {} },
    ]);
  }
  const gauge = (name: string, help: string, value: () => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(value());
      },
    });
  gauge('roce_watched_qps', 'RC queue pairs open.', () => [...estats.connections].length);
  gauge('roce_estats_groups', 'Latency groups in use.', () => estats.groups.size);
  return registry;
}

interface MetricValue {
  readonly value: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly metricName?: string;
}

/** prom-client's own counters and histograms only grow by one event at a time; ours are added up elsewhere and told as they are. */
function register(
  registry: Registry,
  name: string,
  help: string,
  type: 'counter' | 'histogram',
  values: () => MetricValue[],
): void {
  const metric = { name, help, type, aggregator: 'sum', get: async () => ({ name, help, type, values: values() }) };
  registry.registerMetric(metric as unknown as Metric);
}

function latencyValues({ op, status, stage, counts, count, sumNs }: OctaveSeries): MetricValue[] {
  const labels = { op, status, stage };
  const metricName = `${LATENCY}_bucket`;
  let below = 0;
  const buckets = OCTAVE_BOUNDS_NS.map((boundNs, i) => {
    below += counts[i];
    return { metricName, labels: { le: String(boundNs / NS_PER_S), ...labels }, value: below };
  });
  return [
    ...buckets,
    { metricName, labels: { le: '+Inf', ...labels }, value: count },
    { metricName: `${LATENCY}_sum`, labels, value: sumNs / NS_PER_S },
    { metricName: `${LATENCY}_count`, labels, value: count },
  ];
}
