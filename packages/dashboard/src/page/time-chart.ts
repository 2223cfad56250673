import { axisRange } from './axis-range.js';
import { element } from './dom.js';
import { onThemeChange, themeColor } from './theme.js';
import { uPlot } from './uplot.js';

type Plot = InstanceType<typeof uPlot>;

const HEIGHT = 200;
const HUES = 8;
/** Of lines beyond the number of hues, which repeat. */
const DASHES = [6, 4];
const MARK_FONT_PX = 11;
const MARK_GAP_PX = 5;
const MARK_ROWS = 3;

export interface ChartMark {
  readonly x: number;
  readonly text: string;
}

export interface Stretch {
  readonly from: number;
  readonly to: number;
}

interface TimeChartOptions {
  readonly labels: readonly string[];
  readonly format: (value: number) => string;
  readonly colors?: readonly string[];
  /** Unit of x. Empty: x is a number without a unit. */
  readonly xLabel?: string;
  /** In the legend. */
  readonly xName?: string;
  /** The axis shows no larger values. */
  readonly yMax?: number;
  /** In pixels. */
  readonly height?: number;
  readonly onSelect?: (stretch: Stretch) => void;
}

export class TimeChart {
  readonly element = element('div', { class: 'chart' });
  readonly #note = element('p', { class: 'chart-note', hidden: '' });
  readonly #options: TimeChartOptions;
  #plot: Plot | undefined;
  #data: Array<ReadonlyArray<number | null>>;
  #marks: readonly ChartMark[] = [];
  #stretch: Stretch | undefined;
  readonly #size = new ResizeObserver(() => this.#resize());
  readonly #stopTheme: () => void;

  constructor(options: TimeChartOptions) {
    this.#options = options;
    this.#data = [[], ...options.labels.map(() => [])];
    this.element.append(this.#note);
    this.#size.observe(this.element);
    this.#stopTheme = onThemeChange(() => this.#plot?.redraw());
  }

  close(): void {
    this.#size.disconnect();
    this.#stopTheme();
    this.#plot?.destroy();
  }

  show(x: readonly number[], values: ReadonlyArray<ReadonlyArray<number | null>>): void {
    this.#data = [x, ...values];
    this.redraw();
  }

  redraw(): void {
    this.#plot?.setData(this.#data as Parameters<Plot['setData']>[0]);
  }

  zoom(stretch: Stretch | undefined): void {
    this.#stretch = stretch;
  }

  marks(marks: readonly ChartMark[]): void {
    this.#marks = marks;
    this.element.dataset['marks'] = marks.map(({ text }) => text).join('; ');
  }

  note(text: string | undefined): void {
    this.#note.hidden = text === undefined;
    this.#note.textContent = text ?? '';
    this.element.classList.toggle('has-note', text !== undefined);
  }

  mark(index: number): void {
    const plot = this.#plot;
    if (plot === undefined) return;
    plot.setCursor({ left: plot.valToPos(plot.data[0][index], 'x'), top: 0 });
  }

  #resize(): void {
    const width = Math.floor(this.element.clientWidth);
    if (width === 0) return;
    if (this.#plot === undefined) this.#plot = this.#newPlot(width);
    else this.#plot.setSize({ width, height: this.#options.height ?? HEIGHT });
  }

  #newPlot(width: number): Plot {
    const {
      labels,
      format,
      xLabel = 's',
      xName = 'time',
      yMax = Number.POSITIVE_INFINITY,
      height = HEIGHT,
      onSelect,
      colors = [],
    } = this.#options;
    const axis = { stroke: () => themeColor('--muted'), grid: { stroke: () => themeColor('--grid') } };
    const options = {
      width,
      height,
      cursor: { y: false, drag: { x: onSelect !== undefined, y: false, setScale: false } },
      scales: {
        x: { time: false, range: (_: unknown, min: number | null, max: number | null) => this.#xRange(min, max) },
        y: {
          range: (_: unknown, min: number, max: number) => [
            Math.min(0, 1.1 * min),
            max > 0 ? Math.min(1.1 * max, yMax) : 1,
          ],
        },
      },
      axes: [
        { ...axis, values: (_: unknown, ticks: readonly number[]) => ticks.map((tick) => `${tick} ${xLabel}`.trim()) },
        { ...axis, size: 84, values: (_: unknown, ticks: readonly number[]) => ticks.map(format) },
      ],
      series: [
        {
          label: xName,
          value: (_: unknown, x: number | null | undefined) =>
            typeof x !== 'number' ? '' : xLabel === '' ? String(x) : `${x.toFixed(2)} ${xLabel}`,
        },
        ...labels.map((label, i) => ({
          label,
          width: 2,
          points: { show: false },
          ...(i >= HUES && { dash: DASHES }),
          stroke: () => themeColor(colors[i] ?? `--hue${i % HUES}`),
          value: (_: unknown, y: number | null | undefined) => (typeof y === 'number' ? format(y) : '–'),
        })),
      ],
      hooks: {
        draw: [(plot: Plot) => this.#drawMarks(plot)],
        setLegend: [(plot: Plot) => this.#tellNewest(plot)],
        setSelect: [(plot: Plot) => this.#selected(plot)],
      },
    };
    return new uPlot(options as unknown as uPlot.Options, this.#data as uPlot.AlignedData, this.element);
  }

  #xRange(min: number | null, max: number | null): [number | null, number | null] {
    return this.#stretch === undefined ? axisRange(min, max) : axisRange(this.#stretch.from, this.#stretch.to);
  }

  #tellNewest(plot: Plot): void {
    const [x] = plot.data;
    if (typeof plot.cursor.idx === 'number' || x.length === 0) return;
    const to = this.#stretch?.to ?? Number.POSITIVE_INFINITY;
    const newest = x.findLastIndex((value) => value <= to);
    plot.setLegend({ idx: Math.max(newest, 0) }, false);
  }

  #selected(plot: Plot): void {
    const { left, width } = plot.select;
    if (width === 0) return;
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.#options.onSelect?.({ from: plot.posToVal(left, 'x'), to: plot.posToVal(left + width, 'x') });
  }

  #drawMarks(plot: Plot): void {
    const { ctx, bbox } = plot;
    const { min, max } = plot.scales['x'];
    const ratio = devicePixelRatio;
    const shown = this.#marks.filter(({ x }) => x >= (min ?? 0) && x <= (max ?? 0));
    ctx.save();
    ctx.strokeStyle = themeColor('--text');
    ctx.fillStyle = themeColor('--text');
    ctx.lineWidth = ratio;
    ctx.setLineDash([4 * ratio, 3 * ratio]);
    ctx.font = `${MARK_FONT_PX * ratio}px system-ui, sans-serif`;
    ctx.textBaseline = 'top';
    const rows: Array<Array<readonly [from: number, to: number]>> = Array.from({ length: MARK_ROWS }, () => []);
    const gap = MARK_GAP_PX * ratio;
    // The newest first: where texts have no room, the oldest are left out.
    for (const { x, text } of shown.toReversed()) {
      const left = plot.valToPos(x, 'x', true);
      ctx.beginPath();
      ctx.moveTo(left, bbox.top);
      ctx.lineTo(left, bbox.top + bbox.height);
      ctx.stroke();
      const width = ctx.measureText(text).width;
      const fitsRight = left + gap + width <= bbox.left + bbox.width;
      const [from, to] = fitsRight ? [left, left + gap + width] : [left - gap - width, left];
      const row = rows.findIndex((taken) => taken.every(([start, end]) => to + gap < start || from > end + gap));
      if (row < 0) continue;
      rows[row].push([from, to]);
      ctx.textAlign = fitsRight ? 'left' : 'right';
      const top = bbox.top + (2 + row * (MARK_FONT_PX + 2)) * ratio;
      ctx.fillText(text, left + (fitsRight ? gap : -gap), top);
    }
    ctx.restore();
  }
}
