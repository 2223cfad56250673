/** A chart of several series over time, drawn by uPlot in the colours of the theme and as wide as its panel. */

import { element } from './dom.js';
import { onThemeChange, themeColor } from './theme.js';
import { uPlot } from './uplot.js';

const HEIGHT = 200;
const HUES = 8;

interface TimeChartOptions {
  readonly labels: readonly string[];
  /** The scale and the legend. */
  readonly format: (value: number) => string;
  /** Unit of the values of x; default seconds. */
  readonly xLabel?: string;
}

/** One chart with a fixed number of series. */
export class TimeChart {
  /** To be put on the page. */
  readonly element = element('div');
  readonly #options: TimeChartOptions;
  #plot: InstanceType<typeof uPlot> | undefined;
  #data: Array<ReadonlyArray<number | null>>;
  readonly #size = new ResizeObserver(() => this.#resize());
  readonly #stopTheme: () => void;

  constructor(options: TimeChartOptions) {
    this.#options = options;
    this.#data = [[], ...options.labels.map(() => [])];
    this.#size.observe(this.element);
    this.#stopTheme = onThemeChange(() => this.#plot?.redraw());
  }

  /** It will not be shown again. */
  close(): void {
    this.#size.disconnect();
    this.#stopTheme();
    this.#plot?.destroy();
  }

  /** `x` ascends; one list of values for each label, null where there is none. */
  show(x: readonly number[], values: ReadonlyArray<ReadonlyArray<number | null>>): void {
    this.#data = [x, ...values];
    this.#plot?.setData(this.#data as Parameters<InstanceType<typeof uPlot>['setData']>[0]);
  }

  /** Puts the cursor on a point, as if the mouse were there. */
  mark(index: number): void {
    const plot = this.#plot;
    if (plot === undefined) return;
    plot.setCursor({ left: plot.valToPos(plot.data[0][index], 'x'), top: 0 });
  }

  #resize(): void {
    const width = Math.floor(this.element.clientWidth);
    if (width === 0) return;
    if (this.#plot === undefined) this.#plot = this.#draw(width);
    else this.#plot.setSize({ width, height: HEIGHT });
  }

  #draw(width: number): InstanceType<typeof uPlot> {
    const { labels, format, xLabel = 's' } = this.#options;
    const axis = { stroke: () => themeColor('--muted'), grid: { stroke: () => themeColor('--grid') } };
    const options = {
      width,
      height: HEIGHT,
      cursor: { y: false },
      scales: {
        x: { time: false },
        y: { range: (_: unknown, _min: number, max: number) => [0, max > 0 ? 1.1 * max : 1] },
      },
      axes: [
        { ...axis, values: (_: unknown, ticks: readonly number[]) => ticks.map((tick) => `${tick} ${xLabel}`) },
        { ...axis, size: 84, values: (_: unknown, ticks: readonly number[]) => ticks.map(format) },
      ],
      series: [
        { label: 'time', value: (_: unknown, x: number | null) => (x === null ? '' : `${x.toFixed(2)} ${xLabel}`) },
        ...labels.map((label, i) => ({
          label,
          width: 2,
          stroke: () => themeColor(`--hue${i % HUES}`),
          value: (_: unknown, y: number | null) => (y === null || y === undefined ? '' : format(y)),
        })),
      ],
    };
    return new uPlot(options as unknown as uPlot.Options, this.#data as uPlot.AlignedData, this.element);
  }
}
