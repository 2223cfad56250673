import { formatByteRate, formatBytes, formatCount, formatPerSecond } from '@rocev2/command/plot';
import type { AttachedDisk, DiskDetail, DiskSample } from '../messages/attached.js';
import type { ChartGroup } from './chart-group.js';
import { element, panel } from './dom.js';
import { LatencyList } from './latency-list.js';
import type { ProgramDetail } from './program-detail.js';
import { Readouts } from './readouts.js';
import type { SeriesChart } from './series-chart.js';

const isSome = (count: number) => count > 0;

export class DiskDetailView implements ProgramDetail<AttachedDisk> {
  readonly #about = element('p', { class: 'muted' });
  readonly #readouts = new Readouts<DiskSample>({
    '': [
      ['is read', ({ outBps }) => outBps, formatByteRate],
      ['is written', ({ inBps }) => inBps, formatByteRate],
      ['requests now', ({ ops }) => ops.reduce((sum, { perSecond }) => sum + perSecond, 0), formatPerSecond],
    ],
    'since the start': [
      ['requests', ({ totals }) => totals.requests, formatCount],
      ['failed', ({ totals }) => totals.errors, formatCount, isSome],
      ['CRC mismatches', ({ totals }) => totals.crcMismatches, formatCount, isSome],
      ['sessions', ({ totals }) => totals.sessions, formatCount],
      ['failovers', ({ totals }) => totals.failovers, formatCount],
      ['requests resent', ({ totals }) => totals.resentRequests, formatCount],
    ],
  });
  readonly #charts: ChartGroup;
  readonly #requests: SeriesChart;
  readonly #bytes: SeriesChart;
  readonly #latency = new LatencyList();

  readonly panels: readonly HTMLElement[];

  constructor(charts: ChartGroup) {
    this.#charts = charts;
    this.#requests = charts.chart(formatPerSecond);
    this.#bytes = charts.chart(formatByteRate);
    this.panels = [
      panel('Disk', 'wide', this.#about, this.#readouts.element),
      charts.panel,
      panel('Requests by operation', 'half', this.#requests.element),
      panel('Bytes by operation', 'half', this.#bytes.element),
      panel('Latency at the disk', 'wide', this.#latency.element),
    ];
  }

  show({ samples, detail }: AttachedDisk): void {
    const now = samples.at(-1);
    this.#about.textContent = about(detail);
    if (now === undefined) this.#readouts.clear();
    else this.#readouts.show(now, now.number);
    this.#charts.show(samples);
    const value = (of: (op: DiskSample['ops'][number]) => number) => (sample: DiskSample, label: string) => {
      const op = sample.ops.find((candidate) => candidate.op === label);
      return op === undefined ? null : of(op);
    };
    const labels = now?.ops.map(({ op }) => op) ?? [];
    this.#requests.show(
      labels,
      samples,
      value(({ perSecond }) => perSecond),
    );
    this.#bytes.show(
      labels.filter((op) => op !== 'flush'),
      samples,
      value(({ bps }) => bps),
    );
    this.#latency.show(detail.latency);
  }
}

function about({ role, store, sizeBytes, nbdClients, connections, path, outage }: DiskDetail): string {
  const { rdma, tcp } = connections;
  const sessions = `${rdma} session${rdma === 1 ? '' : 's'} over RDMA, ${tcp} over TCP`;
  const parts =
    role === 'server'
      ? [`storage server, ${formatBytes(sizeBytes)} of ${store}`, sessions]
      : [
          `NBD gateway to ${formatBytes(sizeBytes)} of ${store}`,
          `${nbdClients} NBD client${nbdClients === 1 ? '' : 's'}`,
        ];
  if (role === 'gateway' && path !== null) parts.push(sessions, `RDMA path: ${path}`);
  if (outage !== null) parts.push(`NO SERVER: ${outage}`);
  return parts.join('; ');
}
