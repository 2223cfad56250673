import { formatBytes, formatCount, formatPerSecond, formatRate } from '@rocev2/command/plot';
import type { AttachedPort, AttachedSwitch, SwitchPortDetail, SwitchSample } from '../messages/attached.js';
import type { ChartGroup } from './chart-group.js';
import { panel } from './dom.js';
import type { ProgramDetail } from './program-detail.js';
import { Readouts } from './readouts.js';
import type { SeriesChart } from './series-chart.js';
import { Table } from './table.js';

const PORTS_DRAWN = 8;

const CHARTS: ReadonlyArray<readonly [string, (value: number) => string, (port: AttachedPort) => number]> = [
  ['Sent by port', formatRate, ({ sentBps }) => sentBps],
  ['Received by port', formatRate, ({ receivedBps }) => receivedBps],
  ['Queue by port', formatBytes, ({ queueBytes }) => queueBytes],
  ['Dropped by port', formatPerSecond, ({ droppedPerSecond }) => droppedPerSecond],
  ['Marked by port', formatPerSecond, ({ markedPerSecond }) => markedPerSecond],
  ['Pauses sent by port', formatPerSecond, ({ pausesSentPerSecond }) => pausesSentPerSecond],
];

export class SwitchDetailView implements ProgramDetail<AttachedSwitch> {
  readonly #readouts = new Readouts<SwitchSample>({
    '': [
      ['sends', ({ outBps }) => outBps, formatRate],
      ['takes', ({ inBps }) => inBps, formatRate],
      ['queued', ({ totals }) => totals.queueBytes, formatBytes],
    ],
    'since the start': [
      ['frames', ({ totals }) => totals.packets, formatCount],
      ['dropped', ({ totals }) => totals.dropped, formatCount],
      ['marked', ({ totals }) => totals.marked, formatCount],
      ['pauses sent', ({ totals }) => totals.pausesSent, formatCount],
      ['pauses received', ({ totals }) => totals.pausesReceived, formatCount],
      ['storms', ({ totals }) => totals.storms, formatCount, (count) => count > 0],
    ],
  });
  readonly #group: ChartGroup;
  readonly #charts: ReadonlyArray<{ readonly chart: SeriesChart; readonly value: (port: AttachedPort) => number }>;
  readonly #ports = new Table('ports', [
    'port',
    'at',
    'rate',
    'longest queue',
    'pauses sent',
    'received',
    'paused now',
    'in storm',
    'dropped',
  ]);
  readonly #rules = new Table('fault rules', ['fault rule', 'struck']);
  readonly #rulePanel = panel('Fault rules', 'wide', this.#rules.element);

  readonly panels: readonly HTMLElement[];

  constructor(group: ChartGroup) {
    this.#group = group;
    const charts = CHARTS.map(([title, format, value]) => ({ title, value, chart: group.chart(format) }));
    this.#charts = charts;
    this.panels = [
      panel('Switch', 'wide', this.#readouts.element),
      group.panel,
      ...charts.map(({ title, chart }) => panel(title, 'third', chart.element)),
      panel('Ports', 'wide', this.#ports.element),
      this.#rulePanel,
    ];
  }

  show({ samples, detail: { ports, rules } }: AttachedSwitch): void {
    const now = samples.at(-1);
    if (now === undefined) this.#readouts.clear();
    else this.#readouts.show(now, now.number);
    this.#group.show(samples);
    const labels = ports.slice(0, PORTS_DRAWN).map(({ name }) => name);
    for (const { chart, value } of this.#charts) {
      chart.show(labels, samples, (sample, label) => {
        const port = sample.ports.find(({ name }) => name === label);
        return port === undefined ? null : value(port);
      });
    }
    this.#ports.show(ports.map(portRow));
    this.#rulePanel.hidden = rules.length === 0;
    this.#rules.show(rules.map(({ rule, hits }) => [rule, String(hits)]));
  }
}

function portRow(port: SwitchPortDetail): string[] {
  return [
    port.name,
    port.local,
    port.rateBps === null ? 'not limited' : formatRate(port.rateBps),
    formatBytes(port.queueBytesMax),
    formatCount(port.pausesSent),
    formatCount(port.pausesReceived),
    priorities(port.pausedPriorities),
    priorities(port.stormPriorities),
    port.drops.map(({ reason, count }) => `${reason} ${count}`).join(', ') || 'nothing',
  ];
}

function priorities(list: readonly number[]): string {
  return list.length === 0 ? 'no' : `priority ${list.join(', ')}`;
}
