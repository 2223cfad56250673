import { formatBytes, formatCount, formatPerSecond } from '@rocev2/command/plot';
import type { AttachedCluster, ClusterSample } from '../messages/attached.js';
import type { ClusterDetail, ClusterReading } from '../messages/cluster-messages.js';
import type { ChartGroup } from './chart-group.js';
import { element, panel } from './dom.js';
import { NodeList } from './node-list.js';
import type { ProgramDetail } from './program-detail.js';
import { Readouts } from './readouts.js';
import type { SeriesChart } from './series-chart.js';
import { Table } from './table.js';

const NODES_DRAWN = 8;
const isSome = (count: number) => count > 0;

type Value = (reading: ClusterReading) => number;

interface Lines {
  readonly title: string;
  readonly format: (value: number) => string;
  readonly lines: Readonly<Record<string, Value>>;
  readonly colors?: readonly string[];
}

const CHARTS: readonly Lines[] = [
  {
    title: 'Nodes by state',
    format: formatCount,
    lines: { up: ({ up }) => up, suspect: ({ suspect }) => suspect, down: ({ down }) => down },
    colors: ['--hue2', '--hue4', '--bad'],
  },
  {
    title: 'Extents by state',
    format: formatCount,
    lines: {
      open: ({ open }) => open,
      'sealed, on three nodes': ({ replicated }) => replicated,
      'sealed, in fragments': ({ coded }) => coded,
    },
  },
  {
    title: 'Extents that are not whole',
    format: formatCount,
    lines: {
      'under-replicated': ({ underReplicated }) => underReplicated,
      unavailable: ({ unavailable }) => unavailable,
      'work in progress': ({ underWay }) => underWay,
    },
    colors: ['--hue4', '--bad', '--hue0'],
  },
  {
    title: 'Seals, repairs and codings',
    format: formatPerSecond,
    lines: {
      sealed: ({ sealsPerSecond }) => sealsPerSecond,
      rebuilt: ({ repairsPerSecond }) => repairsPerSecond,
      coded: ({ codingsPerSecond }) => codingsPerSecond,
    },
  },
  { title: 'Free space', format: formatBytes, lines: { 'nodes that are not down': ({ freeBytes }) => freeBytes } },
];

export class ClusterDetailView implements ProgramDetail<AttachedCluster> {
  readonly #about = element('p', { class: 'muted' });
  readonly #readouts = new Readouts<ClusterReading>({
    '': [
      ['nodes up', ({ up }) => up, formatCount],
      ['suspect', ({ suspect }) => suspect, formatCount, isSome],
      ['down', ({ down }) => down, formatCount, isSome],
      ['open', ({ open }) => open, formatCount],
      ['sealed', ({ replicated, coded }) => replicated + coded, formatCount],
      ['in fragments', ({ coded }) => coded, formatCount],
      ['under-replicated', ({ underReplicated }) => underReplicated, formatCount, isSome],
      ['unavailable', ({ unavailable }) => unavailable, formatCount, isSome],
      ['repairs in progress', ({ underWay }) => underWay, formatCount],
      ['stored', ({ usedBytes }) => usedBytes, formatBytes],
      ['free', ({ freeBytes }) => freeBytes, formatBytes],
    ],
    'since the start': [
      ['repairs done', ({ totals }) => totals.repairs, formatCount],
      ['seals', ({ totals }) => totals.seals, formatCount],
      ['damaged records', ({ totals }) => totals.damaged, formatCount, isSome],
    ],
  });
  readonly #group: ChartGroup;
  readonly #charts: ReadonlyArray<{ readonly chart: SeriesChart; readonly lines: Readonly<Record<string, Value>> }>;
  readonly #stored: SeriesChart;
  readonly #nodes = new NodeList();
  readonly #managers = new Table('managers', ['manager', 'does', 'since']);
  readonly #streams = new Table('streams', ['stream', 'extents', 'in fragments', 'sealed', 'owner']);
  readonly #managerPanel = panel('Managers', 'wide', this.#managers.element);
  readonly #streamPanel = panel('Streams', 'wide', this.#streams.element);
  readonly #ofLeader: readonly HTMLElement[];

  readonly panels: readonly HTMLElement[];

  constructor(group: ChartGroup) {
    this.#group = group;
    const charts = CHARTS.map(({ title, format, lines, colors }) => ({
      title,
      lines,
      chart: group.chart(format, colors),
    }));
    this.#charts = charts;
    this.#stored = group.chart(formatBytes);
    this.#ofLeader = [
      panel('Nodes', 'wide', this.#nodes.element),
      ...charts.map(({ title, chart }) => panel(title, 'third', chart.element)),
      panel('Space in use by node', 'third', this.#stored.element),
    ];
    this.panels = [
      panel('Cluster', 'wide', this.#about, this.#readouts.element),
      group.panel,
      ...this.#ofLeader,
      this.#streamPanel,
      this.#managerPanel,
    ];
  }

  show({ samples, detail, address }: AttachedCluster): void {
    const { nodes, streams, managers } = detail;
    const newest = samples.at(-1);
    this.#about.textContent = about(detail, address);
    this.#showReadouts(newest);
    const isLeading = detail.leader === address;
    this.#readouts.element.hidden = !isLeading;
    for (const own of this.#ofLeader) own.hidden = !isLeading;
    this.#group.show(samples);
    if (!isLeading) this.#group.panel.hidden = true;
    this.#showCharts(samples, newest?.reading ?? null);
    this.#nodes.show(nodes, samples);
    this.#streamPanel.hidden = streams.length === 0;
    this.#streams.show(
      streams.map(({ stream, extents, coded, sealedBytes, owner }) => [
        stream,
        formatCount(extents),
        formatCount(coded),
        formatBytes(sealedBytes),
        owner ?? 'nobody',
      ]),
    );
    this.#managerPanel.hidden = managers.length < 2;
    this.#managers.show(managers.map((one) => [one.address, one.leads ? 'leads' : 'waits', one.since]));
  }

  #showReadouts(newest: ClusterSample | undefined): void {
    if (newest === undefined || newest.reading === null) this.#readouts.clear();
    else this.#readouts.show(newest.reading, newest.number);
  }

  #showCharts(samples: readonly ClusterSample[], now: ClusterReading | null): void {
    for (const { chart, lines } of this.#charts) {
      chart.show(Object.keys(lines), samples, ({ reading }, label) =>
        reading === null ? null : lines[label](reading),
      );
    }
    const drawn = (now?.nodes ?? []).slice(0, NODES_DRAWN).map(({ node }) => `node ${node}`);
    this.#stored.show(drawn, samples, ({ reading }, label) => {
      const node = reading?.nodes.find((one) => `node ${one.node}` === label);
      return node === undefined ? null : node.usedBytes;
    });
  }
}

function about(detail: ClusterDetail, address: string): string {
  const { cluster, leader, trouble, nodes, nodeCount, streams, streamCount } = detail;
  const name = cluster === null ? 'a cluster without a name so far' : `cluster ${cluster}`;
  if (trouble !== null) return `${name}; ${address} leads, and cannot tell more: ${trouble}`;
  if (leader === null) return `${name}; no manager leads`;
  if (leader !== address) return `${name}; this manager waits for its turn, ${leader} leads`;
  const parts = [name, `the manager at ${address} leads`];
  if (nodeCount > nodes.length) parts.push(`${nodes.length} of ${nodeCount} nodes shown, those in trouble first`);
  if (streamCount > streams.length) parts.push(`the largest ${streams.length} of ${streamCount} streams shown`);
  return parts.join('; ');
}
