import { COLORS, formatCount, formatNs, formatPerSecond, formatRate } from '@rocev2/command/plot';
import type { AttachedConnection, AttachedEndpoint, EndpointDetail, EndpointSample } from '../messages/attached.js';
import { connectionName } from '../messages/connection-name.js';
import type { ChartGroup } from './chart-group.js';
import { element, panel } from './dom.js';
import { LatencyList } from './latency-list.js';
import type { ProgramDetail } from './program-detail.js';
import { Readouts } from './readouts.js';
import type { SeriesChart } from './series-chart.js';
import { StageBars } from './stage-bars.js';
import { Table } from './table.js';

const isSome = (count: number) => count > 0;

type OfConnection = (connection: AttachedConnection) => number | null;

/** Each has a line for each connection. The optional ones are hidden where no connection has such a value. */
const CHARTS: ReadonlyArray<
  readonly [title: string, format: (value: number) => string, of: OfConnection, isOptional: boolean]
> = [
  ['Sent by connection', formatRate, ({ sentBps }) => sentBps, false],
  ['Received by connection', formatRate, ({ receivedBps }) => receivedBps, false],
  ['Rate that is allowed', formatRate, ({ rateBps }) => rateBps, true],
  ['DCQCN’s alpha', (alpha) => alpha.toFixed(2), ({ alpha }) => alpha, true],
];

export class EndpointDetailView implements ProgramDetail<AttachedEndpoint> {
  readonly #about = element('p', { class: 'muted' });
  readonly #readouts = new Readouts<EndpointSample>({
    '': [
      ['sends', ({ outBps }) => outBps, formatRate],
      ['receives', ({ inBps }) => inBps, formatRate],
      ['copies to mapped regions', ({ copiedBps }) => copiedBps, formatRate],
    ],
    'since the start': [
      ['copies', ({ totals }) => totals.copies, formatCount],
      ['retransmitted', ({ totals }) => totals.resent, formatCount],
      ['NAKs', ({ totals }) => totals.naks, formatCount],
      ['RNR NAKs', ({ totals }) => totals.rnrNaks, formatCount],
      ['timeouts', ({ totals }) => totals.timeouts, formatCount, isSome],
      ['marked', ({ totals }) => totals.marks, formatCount],
      ['CNPs sent', ({ totals }) => totals.cnpsSent, formatCount],
      ['CNPs received', ({ totals }) => totals.cnpsReceived, formatCount],
      ['pauses', ({ totals }) => totals.pauses, formatCount],
      ['failed', ({ totals }) => totals.errors, formatCount, isSome],
    ],
  });
  readonly #charts: ChartGroup;
  readonly #ofConnections: ReadonlyArray<{
    readonly chart: SeriesChart;
    readonly panel: HTMLElement;
    readonly of: OfConnection;
    readonly isOptional: boolean;
  }>;
  readonly #repairs: SeriesChart;
  readonly #latency = new LatencyList();
  readonly #stages = new StageBars();
  readonly #verdicts = new Table('cause of the latency', ['connection', 'operation', 'mean', 'owner', 'because']);
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

  readonly panels: readonly HTMLElement[];

  constructor(charts: ChartGroup) {
    this.#charts = charts;
    this.#ofConnections = CHARTS.map(([title, format, of, isOptional]) => {
      const chart = charts.chart(format);
      return { chart, panel: panel(title, isOptional ? 'half' : 'third', chart.element), of, isOptional };
    });
    const panelsOf = (isOptional: boolean) =>
      this.#ofConnections.filter((one) => one.isOptional === isOptional).map((one) => one.panel);
    this.#repairs = charts.chart(formatPerSecond, [COLORS.repeated]);
    this.#protectionPanel = panel('Protected connections', 'wide', this.#protection.element, this.#drops);
    this.panels = [
      panel('Endpoint', 'wide', this.#about, this.#readouts.element),
      charts.panel,
      ...panelsOf(false),
      panel('Packets retransmitted', 'third', this.#repairs.element),
      ...panelsOf(true),
      panel('Latency, posted to polled', 'half', this.#latency.element),
      panel('Where the time goes', 'half', this.#stages.element),
      panel('Cause of the latency', 'wide', this.#verdicts.element),
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
    for (const { chart, panel, of, isOptional } of this.#ofConnections) {
      panel.hidden = isOptional && shown.every((connection) => of(connection) === null);
      chart.show(labels, samples, ({ connections }, label) => {
        const connection = connections.find(({ conn }) => connectionName(conn) === label);
        return connection === undefined ? null : of(connection);
      });
    }
    this.#repairs.show(['retransmitted'], samples, ({ resentPerSecond }) => resentPerSecond);
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
