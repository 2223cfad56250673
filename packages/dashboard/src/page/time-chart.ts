/** Lines over time, with the values at the pointer, else the newest ones. A stretch of time can be dragged out. */

import {
  drawGrid,
  drawLine,
  escapeXml,
  exactScale,
  extent,
  linearScale,
  type PlotBox,
  pixel,
  pixelsIn,
  type Scale,
  tag,
} from '@rocev2/command/plot';
import { element, svgElement } from './dom.js';

const HEIGHT = 200;
const HUES = 8;
const [LEFT, RIGHT, TOP, BOTTOM] = [84, 12, 8, 24];
const X_TICK_PX = 90;
const Y_TICK_PX = 40;
const MARK_FONT_PX = 11;
const MARK_CHARACTER_PX = 6;
const MARK_GAP_PX = 5;
const MARK_ROWS = 3;
const DRAG_MIN_PX = 4;

export interface ChartMark {
  readonly x: number;
  readonly text: string;
}

/** A mark beside the lines; it has the colour of one of them. */
export interface ChartPoint {
  readonly line: number;
  readonly x: number;
  readonly y: number;
}

export interface Stretch {
  readonly from: number;
  readonly to: number;
}

interface TimeChartOptions {
  readonly labels: readonly string[];
  readonly format: (value: number) => string;
  /** Style properties. */
  readonly colors?: readonly string[];
  /** Unit of x. */
  readonly xLabel?: string;
  /** Instead of numbers with their unit. */
  readonly formatX?: (x: number) => string;
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
  readonly #svg = svgElement('svg', { class: 'plot', 'aria-hidden': 'true' });
  readonly #drawing = svgElement('g');
  readonly #selection = svgElement('rect', { class: 'selection', width: 0 });
  readonly #cursor = svgElement('line', { class: 'cursor', visibility: 'hidden' });
  readonly #area = svgElement('rect', { class: 'plot-area' });
  /** Of x, then of each line. */
  readonly #values: readonly HTMLElement[];
  readonly #options: TimeChartOptions;
  readonly #classes: readonly string[];
  #x: readonly number[] = [];
  #lines: ReadonlyArray<ReadonlyArray<number | null>>;
  #marks: readonly ChartMark[] = [];
  #points: readonly ChartPoint[] = [];
  #stretch: Stretch | undefined;
  #width = 0;
  #box: PlotBox = { left: LEFT, top: TOP, width: 0, height: 0 };
  #xScale: Scale = exactScale(0, 1, 1);
  /** The place whose values the legend shows; undefined: the newest. */
  #place: number | undefined;
  #dragFrom: number | undefined;
  readonly #size = new ResizeObserver(() => this.#resize());

  constructor(options: TimeChartOptions) {
    const { labels, colors = [], xName = 'time' } = options;
    this.#options = options;
    this.#lines = labels.map(() => []);
    this.#classes = labels.map((_, i) => `${(colors[i] ?? `--hue${i % HUES}`).slice(2)}${i < HUES ? '' : ' dashed'}`);
    const swatches = this.#classes.map((names) => element('span', { class: `swatch ${names}` }));
    this.#values = [xName, ...labels].map(() => element('td', { class: 'value' }));
    const rows = [xName, ...labels].map((label, i) =>
      element('tr', {}, element('th', { scope: 'row' }, ...swatches.slice(i - 1, i), label), this.#values[i]),
    );
    this.#svg.append(this.#drawing, this.#selection, this.#cursor, this.#area);
    this.element.append(this.#note, this.#svg, element('table', { class: 'chart-legend' }, ...rows));
    this.#area.addEventListener('pointermove', (event) => this.#point(event));
    this.#area.addEventListener('pointerleave', () => this.#choose(undefined));
    this.#area.addEventListener('pointerdown', (event) => this.#startDrag(event));
    this.#area.addEventListener('pointerup', (event) => this.#endDrag(event));
    this.#area.addEventListener('pointercancel', () => this.#select(0, 0));
    this.#size.observe(this.element);
  }

  close(): void {
    this.#size.disconnect();
  }

  show(x: readonly number[], values: ReadonlyArray<ReadonlyArray<number | null>>): void {
    [this.#x, this.#lines] = [x, values];
    this.redraw();
  }

  zoom(stretch: Stretch | undefined): void {
    this.#stretch = stretch;
  }

  marks(marks: readonly ChartMark[]): void {
    this.#marks = marks;
    this.element.dataset['marks'] = marks.map(({ text }) => text).join('; ');
  }

  points(points: readonly ChartPoint[]): void {
    this.#points = points;
    this.redraw();
  }

  note(text: string | undefined): void {
    this.#note.hidden = text === undefined;
    this.#note.textContent = text ?? '';
    this.element.classList.toggle('has-note', text !== undefined);
  }

  mark(index: number): void {
    this.#choose(index);
  }

  redraw(): void {
    if (this.#width === 0) return;
    const { format, xLabel = 's', formatX, yMax = Number.POSITIVE_INFINITY, height = HEIGHT } = this.#options;
    const { left, top } = this.#box;
    const box = { left, top, width: this.#width - left - RIGHT, height: height - top - BOTTOM };
    const { from, to } = this.#stretch ?? { from: this.#x[0] ?? 0, to: this.#x[this.#x.length - 1] ?? 1 };
    const [first, last] = this.#within(from, to);
    const shown = (values: ReadonlyArray<number | null>) => values.slice(first, last).filter((y) => y !== null);
    const { min, max } = extent(this.#lines.flatMap(shown));
    const yScale = linearScale(
      Math.min(0, Number.isFinite(min) ? min : 0),
      max > 0 ? Math.min(max, yMax) : 1,
      Math.max(2, Math.floor(box.height / Y_TICK_PX)),
    );
    const xScale = exactScale(from, to, Math.max(2, Math.floor(box.width / X_TICK_PX)));
    [this.#box, this.#xScale] = [box, xScale];
    const named = { ...yScale, ticks: yScale.ticks.map(({ value }) => ({ value, label: escapeXml(format(value)) })) };
    const pixels = pixelsIn(box, xScale, yScale);
    const x = this.#x.slice(first, last);
    const lines = this.#lines.flatMap((values, i) =>
      drawLine(this.#classes[i], { x, values: values.slice(first, last), ...pixels }),
    );
    const points = this.#points.map(({ line, x: at, y }) =>
      tag('circle', { class: `dot ${this.#classes[line]}`, cx: pixels.px(at), cy: pixels.py(y), r: 4 }),
    );
    const viewport = { x: left, y: top, width: box.width, height: box.height };
    const labels = xScale.ticks.map(({ value, label }) =>
      tag(
        'text',
        { x: pixels.px(value), y: height - 6, 'text-anchor': value === to ? 'end' : 'middle' },
        escapeXml(formatX?.(value) ?? `${label} ${xLabel}`),
      ),
    );
    this.#drawing.innerHTML = [
      ...drawGrid(box, xScale, named),
      ...labels,
      // What is outside of the box is not drawn.
      tag('svg', { ...viewport, viewBox: `${left} ${top} ${box.width} ${box.height}` }, ...lines, ...points),
      ...this.#drawMarks(from, to),
    ].join('');
    for (const [name, value] of Object.entries(viewport)) this.#area.setAttribute(name, String(value));
    this.#tell();
  }

  #resize(): void {
    const { height = HEIGHT } = this.#options;
    const width = Math.floor(this.element.clientWidth);
    if (width === 0 || width === this.#width) return;
    this.#width = width;
    this.#svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.#svg.setAttribute('width', String(width));
    this.#svg.setAttribute('height', String(height));
    this.redraw();
  }

  /** Indices from one before a stretch to one behind it, so that lines leave the box at its sides. */
  #within(from: number, to: number): [first: number, last: number] {
    const first = this.#x.findIndex((x) => x >= from);
    if (first < 0) return [0, 0];
    const after = this.#x.findIndex((x) => x > to);
    return [Math.max(0, first - 1), after < 0 ? this.#x.length : after + 1];
  }

  #drawMarks(from: number, to: number): string[] {
    const { left, top, width, height } = this.#box;
    const rows: Array<Array<readonly [from: number, to: number]>> = Array.from({ length: MARK_ROWS }, () => []);
    const shown = this.#marks.filter(({ x }) => x >= from && x <= to);
    // The newest first: where texts have no room, the oldest are left out.
    return shown.toReversed().flatMap(({ x, text }) => {
      const at = left + width * this.#xScale.position(x);
      const line = tag('line', { class: 'mark', x1: pixel(at), x2: pixel(at), y1: top, y2: top + height });
      const length = MARK_CHARACTER_PX * text.length;
      const fitsRight = at + MARK_GAP_PX + length <= left + width;
      const [start, end] = fitsRight ? [at, at + MARK_GAP_PX + length] : [at - MARK_GAP_PX - length, at];
      const row = rows.findIndex((taken) => taken.every(([a, b]) => end + MARK_GAP_PX < a || start > b + MARK_GAP_PX));
      if (row < 0) return [line];
      rows[row].push([start, end]);
      const place = {
        class: 'mark-text',
        x: pixel(at + (fitsRight ? MARK_GAP_PX : -MARK_GAP_PX)),
        y: top + MARK_FONT_PX + row * (MARK_FONT_PX + 2),
        'text-anchor': fitsRight ? 'start' : 'end',
      };
      return [line, tag('text', place, escapeXml(text))];
    });
  }

  #pixelOf({ clientX }: PointerEvent): number {
    const { left, width } = this.#box;
    const inside = clientX - this.#svg.getBoundingClientRect().left;
    return Math.min(left + width, Math.max(left, inside));
  }

  #valueAt(at: number): number {
    const { from, to } = this.#stretch ?? { from: this.#x[0], to: this.#x[this.#x.length - 1] };
    return from + ((at - this.#box.left) / this.#box.width) * (to - from);
  }

  #point(event: PointerEvent): void {
    if (this.#x.length === 0) return;
    const at = this.#pixelOf(event);
    if (this.#dragFrom !== undefined) this.#select(Math.min(at, this.#dragFrom), Math.abs(at - this.#dragFrom));
    const value = this.#valueAt(at);
    const after = this.#x.findIndex((x) => x >= value);
    const next = after < 0 ? this.#x.length - 1 : after;
    const isNearer = next > 0 && value - this.#x[next - 1] < this.#x[next] - value;
    this.#choose(isNearer ? next - 1 : next);
  }

  #startDrag(event: PointerEvent): void {
    if (this.#options.onSelect === undefined || event.button !== 0) return;
    this.#area.setPointerCapture(event.pointerId);
    this.#dragFrom = this.#pixelOf(event);
  }

  #endDrag(event: PointerEvent): void {
    const [from, to] = [this.#dragFrom ?? 0, this.#pixelOf(event)].sort((a, b) => a - b);
    const isDragged = this.#dragFrom !== undefined && to - from >= DRAG_MIN_PX;
    this.#dragFrom = undefined;
    this.#select(0, 0);
    if (isDragged) this.#options.onSelect?.({ from: this.#valueAt(from), to: this.#valueAt(to) });
  }

  #select(x: number, width: number): void {
    const { top: y, height } = this.#box;
    for (const [name, value] of Object.entries({ x, y, width, height })) {
      this.#selection.setAttribute(name, String(value));
    }
  }

  #choose(place: number | undefined): void {
    this.#place = place;
    this.#tell();
  }

  #tell(): void {
    const to = this.#stretch?.to ?? Number.POSITIVE_INFINITY;
    const newest = Math.max(
      0,
      this.#x.findLastIndex((x) => x <= to),
    );
    const place = Math.min(this.#place ?? newest, this.#x.length - 1);
    if (place < 0) return;
    const { format, xLabel = 's', formatX } = this.#options;
    const x = this.#x[place];
    this.#values[0].textContent = formatX?.(x) ?? `${x.toFixed(2)} ${xLabel}`;
    for (const [i, values] of this.#lines.entries()) {
      const value = values[place];
      this.#values[i + 1].textContent = typeof value === 'number' ? format(value) : '–';
    }
    const { left, top, width, height } = this.#box;
    const at = left + width * this.#xScale.position(x);
    for (const [name, value] of Object.entries({ x1: at, x2: at, y1: top, y2: top + height })) {
      this.#cursor.setAttribute(name, pixel(value));
    }
    this.#cursor.setAttribute('visibility', this.#place === undefined ? 'hidden' : 'visible');
  }
}
