import { COLORS, formatBytes, formatClock, formatPerSecond, formatRate, QUEUE_PAIR_COLORS } from '@rocev2/command/plot';
import type { LabEvent, LabQueuePair, LabSample } from '../messages/lab-messages.js';
import { panel } from './dom.js';
import { type ChartMark, TimeChart } from './time-chart.js';
import { TimeRange } from './time-range.js';

const FOLLOW_SECONDS = 60;
/** Of the chart on the first screen. */
const FIRST_HEIGHT = 260;

interface LabChart {
  readonly title: string;
  readonly size: 'half' | 'third';
  readonly chart: TimeChart;
  readonly values: (samples: readonly LabSample[]) => ReadonlyArray<ReadonlyArray<number | null>>;
  readonly why: (shown: readonly LabSample[]) => string | undefined;
}

const HAS_DATA = () => undefined;

export class LabCharts {
  readonly throughput: HTMLElement;
  readonly panels: readonly HTMLElement[];
  readonly #charts: readonly LabChart[];
  readonly #range = new TimeRange({
    label: 'time',
    format: (seconds) => formatClock(seconds * 1e9),
    followSpan: FOLLOW_SECONDS,
    onChange: () => this.#draw(),
  });
  #samples: readonly LabSample[] = [];
  #marks: ChartMark[] = [];

  constructor(queuePairs: number) {
    this.#charts = chartsOf(queuePairs, (stretch) => this.#range.select(stretch));
    const [throughput, ...others] = this.#charts.map(({ title, size, chart }) => panel(title, size, chart.element));
    throughput.classList.add('first');
    this.throughput = throughput;
    this.panels = [panel('Time: drag the window, pull its edges', 'wide', this.#range.element), ...others];
  }

  mark({ kind, timeNs, text }: LabEvent): void {
    if (kind === 'settings') this.#marks.push({ x: timeNs / 1e9, text });
  }

  show(samples: readonly LabSample[]): void {
    this.#samples = samples;
    const startS = samples.length === 0 ? 0 : samples[0].timeNs / 1e9;
    this.#marks = this.#marks.filter(({ x }) => x >= startS);
    this.#range.show(
      samples.map(({ timeNs }) => timeNs / 1e9),
      samples.map(({ linkBps }) => linkBps),
      this.#marks,
    );
    this.#draw();
  }

  #draw(): void {
    const samples = this.#samples;
    const { from, to } = this.#range.stretch;
    const shown = samples.filter(({ timeNs }) => timeNs >= from * 1e9 && timeNs <= to * 1e9);
    const x = samples.map(({ timeNs }) => timeNs / 1e9);
    for (const { chart, values, why } of this.#charts) {
      chart.zoom(this.#range.stretch);
      chart.marks(this.#marks);
      chart.note(why(shown));
      chart.show(x, values(samples));
    }
  }
}

function chartsOf(queuePairs: number, onSelect: (stretch: { from: number; to: number }) => void): LabChart[] {
  const labels = Array.from({ length: queuePairs }, (_, i) => `QP ${i + 1}`);
  const perQp = (value: (queuePair: LabQueuePair) => number | null) => (samples: readonly LabSample[]) =>
    labels.map((_, i) => samples.map((s) => (s.queuePairs[i] === undefined ? null : value(s.queuePairs[i]))));
  const lacks = (value: (queuePair: LabQueuePair) => number | null) => (shown: readonly LabSample[]) =>
    shown.every((s) => s.queuePairs.every((queuePair) => value(queuePair) === null));
  const chart = (
    names: readonly string[],
    format: (value: number) => string,
    colors: readonly string[],
    height = 200,
  ) => new TimeChart({ labels: names, format, onSelect, colors, height });
  const [lacksRate, lacksAlpha] = [lacks(({ rateBps }) => rateBps), lacks(({ alpha }) => alpha)];
  return [
    {
      title: 'Throughput',
      size: 'half',
      chart: chart(['goodput', 'on the link'], formatRate, [COLORS.data, COLORS.link], FIRST_HEIGHT),
      values: (samples) => [samples.map((s) => s.goodputBps), samples.map((s) => s.linkBps)],
      why: HAS_DATA,
    },
    {
      title: 'Repairs, packets per second',
      size: 'third',
      chart: chart(['retransmitted', 'lost'], formatPerSecond, [COLORS.repeated, COLORS.lost]),
      values: (samples) => [samples.map((s) => s.retransmittedPerSecond), samples.map((s) => s.droppedPerSecond)],
      why: HAS_DATA,
    },
    {
      title: 'Goodput by queue pair',
      size: 'third',
      chart: chart(labels, formatRate, QUEUE_PAIR_COLORS),
      values: perQp(({ goodputBps }) => goodputBps),
      why: (shown) => (shown.every((s) => s.goodputBps === 0) ? 'No message completed in this time.' : undefined),
    },
    {
      title: 'Rate that rate control allows',
      size: 'third',
      chart: chart(labels, formatRate, QUEUE_PAIR_COLORS),
      values: perQp(({ rateBps }) => rateBps),
      why: (shown) => (lacksRate(shown) ? 'Nothing limits the rate: rate control was “none”.' : undefined),
    },
    {
      title: 'DCQCN’s alpha',
      size: 'third',
      chart: chart(labels, (alpha) => alpha.toFixed(2), QUEUE_PAIR_COLORS),
      values: perQp(({ alpha }) => alpha),
      why: (shown) => (lacksAlpha(shown) ? 'Only DCQCN has an alpha: choose the rate control “dcqcn”.' : undefined),
    },
    {
      title: 'Queue of the switch',
      size: 'third',
      chart: chart(['towards B'], formatBytes, [COLORS.queue]),
      values: (samples) => [samples.map(({ queueBytes }) => queueBytes)],
      why: (shown) =>
        shown.every(({ settings }) => settings.link === 'fast')
          ? 'On the fast link the switch has no queue: choose a link of 200 Mb/s.'
          : undefined,
    },
  ];
}
