import type { AttachedConnection, AttachedEndpoint, EndpointDetail, EndpointSample } from '../messages/attached.js';
import { connectionName } from '../messages/connection-name.js';
import type { ChartGroup } from './chart-group.js';
import { element, panel } from './dom.js';
import { formatCount, formatNs, formatPerSecond, formatRate } from './format.js';
import { LatencyList } from './latency-list.js';
import type { ProgramDetail } from './program-detail.js';
import { Readouts } from './readouts.js';
import type { SeriesChart } from './series-chart.js';
import { StageBars } from './stage-bars.js';
import { Table } from './table.js';

const isSome = (count: number) => count > 0;

export class EndpointDetailView implements ProgramDetail<AttachedEndpoint> {
  readonly #about = element('p', { class: 'muted' });
  readonly #readouts = new Readouts<EndpointSample>([
    { label: 'sends', value: ({ outBps }) => outBps, format: formatRate },
    { label: 'receives', value: ({ inBps }) => inBps, format: formatRate },
    { label: 'sent again', value: ({ totals }) => totals.resent, format: formatCount },
    { label: 'NAKs', value: ({ totals }) => totals.naks, format: formatCount },
    { label: 'RNR NAKs', value: ({ totals }) => totals.rnrNaks, format: formatCount },
    { label: 'timeouts', value: ({ totals }) => totals.timeouts, format: formatCount, isBad: isSome },
    { label: 'marked', value: ({ totals }) => totals.marks, format: formatCount },
    { label: 'CNPs sent', value: ({ totals }) => totals.cnpsSent, format: formatCount },
    { label: 'CNPs received', value: ({ totals }) => totals.cnpsReceived, format: formatCount },
    { label: 'pauses', value: ({ totals }) => totals.pauses, format: formatCount },
    { label: 'failed', value: ({ totals }) => totals.errors, format: formatCount, isBad: isSome },
  ]);
  readonly #charts: ChartGroup;
  readonly #sent: SeriesChart;
  readonly #received: SeriesChart;
  readonly #rates: SeriesChart;
  readonly #alphas: SeriesChart;
  readonly #repairs: SeriesChart;
  readonly #latency = new LatencyList();
  readonly #stages = new StageBars();
  readonly #verdicts = new Table('who owns the latency', ['connection', 'operation', 'mean', 'owner', 'because']);
  readonly #protection = new Table('protected connections', [
    'connection',
    'peer',
    'cipher',
    'SPI out',
    'SPI in',
    'sealed',
    'opened',
    'keys changed',
    'replayed',
    'forged',
  ]);
  readonly #drops = element('p', { class: 'muted' });
  readonly #protectionPanel: HTMLElement;
  readonly #ratePanel: HTMLElement;
  readonly #alphaPanel: HTMLElement;

  readonly panels: readonly HTMLElement[];

  constructor(charts: ChartGroup) {
    this.#charts = charts;
    this.#sent = charts.chart(formatRate);
    this.#received = charts.chart(formatRate);
    this.#rates = charts.chart(formatRate);
    this.#alphas = charts.chart((alpha) => alpha.toFixed(2));
    this.#repairs = charts.chart(formatPerSecond);
    this.#ratePanel = panel('Rate that is allowed', 'half', this.#rates.element);
    this.#alphaPanel = panel('DCQCN’s alpha', 'half', this.#alphas.element);
    this.#protectionPanel = panel('Protected connections', 'wide', this.#protection.element, this.#drops);
    this.panels = [
      panel('Endpoint', 'wide', this.#about, this.#readouts.element),
      charts.panel,
      panel('Sent by connection', 'third', this.#sent.element),
      panel('Received by connection', 'third', this.#received.element),
      panel('Packets sent again', 'third', this.#repairs.element),
      this.#ratePanel,
      this.#alphaPanel,
      panel('Latency, posted to polled', 'half', this.#latency.element),
      panel('Where the time goes', 'half', this.#stages.element),
      panel('Who owns the latency', 'wide', this.#verdicts.element),
      this.#protectionPanel,
    ];
  }

  show({ samples, detail }: AttachedEndpoint): void {
    const { port, connectionCount, loopDelayP99Ns, latency, stages, verdicts } = detail;
    this.#showProtection(detail);
    const now = samples.at(-1);
    const shown = now?.connections ?? [];
    const more = connectionCount > shown.length ? `, the busiest ${shown.length} shown` : '';
    this.#about.textContent =
      `${port}; ${connectionCount} connection${connectionCount === 1 ? '' : 's'}${more}; ` +
      `its event loop is late by ${formatNs(loopDelayP99Ns)} (p99)`;
    if (now === undefined) this.#readouts.clear();
    else this.#readouts.show(now, now.number);
    this.#charts.show(samples);
    const labels = shown.map(({ conn }) => connectionName(conn));
    const ofConnection =
      (value: (connection: AttachedConnection) => number | null) => (s: EndpointSample, label: string) => {
        const connection = s.connections.find(({ conn }) => connectionName(conn) === label);
        return connection === undefined ? null : value(connection);
      };
    this.#sent.show(
      labels,
      samples,
      ofConnection(({ sentBps }) => sentBps),
    );
    this.#received.show(
      labels,
      samples,
      ofConnection(({ receivedBps }) => receivedBps),
    );
    this.#ratePanel.hidden = shown.every(({ rateBps }) => rateBps === null);
    this.#rates.show(
      labels,
      samples,
      ofConnection(({ rateBps }) => rateBps),
    );
    this.#alphaPanel.hidden = shown.every(({ alpha }) => alpha === null);
    this.#alphas.show(
      labels,
      samples,
      ofConnection(({ alpha }) => alpha),
    );
    this.#repairs.show(['sent again'], samples, ({ resentPerSecond }) => resentPerSecond);
    this.#latency.show(latency);
    this.#stages.show(stages);
    this.#verdicts.show(
      verdicts.map(({ conn, op, meanNs, owner, because }) => [
        connectionName(conn),
        op,
        formatNs(meanNs),
        owner,
        because,
      ]),
    );
  }
  #showProtection({ protections, protectionDrops }: EndpointDetail): void {
    this.#protectionPanel.hidden = protections.length === 0 && protectionDrops.length === 0;
    this.#protection.show(
      protections.map(({ conn, peer, cipher, sendSpi, receiveSpi, ...counts }) => [
        connectionName(conn),
        peer,
        cipher,
        formatSpi(sendSpi),
        formatSpi(receiveSpi),
        ...[counts.sealed, counts.opened, counts.rekeys, counts.replayed, counts.forged].map(formatCount),
      ]),
    );
    const drops = protectionDrops.map(({ reason, count }) => `${formatCount(count)} ${reason}`).join(', ');
    this.#drops.textContent = `Dropped by the endpoint: ${drops === '' ? 'nothing' : drops}.`;
  }
}

function formatSpi(spi: number): string {
  return `0x${spi.toString(16)}`;
}
