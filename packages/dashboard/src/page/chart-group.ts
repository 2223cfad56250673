import { formatClock } from '@rocev2/command/plot';
import { panel } from './dom.js';
import { SeriesChart } from './series-chart.js';
import { TimeRange } from './time-range.js';

const FOLLOW_SECONDS = 60;

interface Moment {
  readonly timeNs: number;
  readonly inBps: number;
  readonly outBps: number;
}

export class ChartGroup {
  readonly panel: HTMLElement;
  readonly #range = new TimeRange({
    label: 'time',
    format: (seconds) => formatClock(seconds * 1e9),
    followSpan: FOLLOW_SECONDS,
    onChange: () => {
      this.#zoom();
      for (const chart of this.#charts) chart.redraw();
    },
  });
  readonly #charts: SeriesChart[] = [];

  constructor() {
    this.panel = panel('Time: drag the window, pull its edges', 'wide', this.#range.element);
  }

  chart(format: (value: number) => string, colors?: readonly string[]): SeriesChart {
    const chart = new SeriesChart(format, (stretch) => this.#range.select(stretch), colors);
    this.#charts.push(chart);
    return chart;
  }

  show(samples: readonly Moment[]): void {
    this.panel.hidden = samples.length < 2;
    this.#range.show(
      samples.map(({ timeNs }) => timeNs / 1e9),
      samples.map(({ inBps, outBps }) => inBps + outBps),
    );
    this.#zoom();
  }

  #zoom(): void {
    for (const chart of this.#charts) chart.zoom(this.#range.stretch);
  }
}
