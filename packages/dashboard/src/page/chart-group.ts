/** The charts of programs over one stretch of time, which the strip above them chooses and which stays from program to program. */

import { panel } from './dom.js';
import { formatClock } from './format.js';
import { SeriesChart } from './series-chart.js';
import { TimeRange } from './time-range.js';

/** Shown while it follows the newest. */
const FOLLOW_SECONDS = 60;

interface Moment {
  readonly timeNs: number;
  readonly inBps: number;
  readonly outBps: number;
}

/** Makes charts, and gives them the same stretch. */
export class ChartGroup {
  /** The strip. */
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

  /** A chart of the group; a stretch that is dragged out in it is for all. `colors`: of its series, where they say something. */
  chart(format: (value: number) => string, colors?: readonly string[]): SeriesChart {
    const chart = new SeriesChart(format, (stretch) => this.#range.select(stretch), colors);
    this.#charts.push(chart);
    return chart;
  }

  /** Draws the strip of these samples: what goes in and comes out. The charts follow when they are shown next. */
  show(samples: readonly Moment[]): void {
    this.panel.hidden = samples.length < 2; // One moment is no stretch.
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
