/** Axes, and lines between them, as markup of an `<svg>`. */

export interface Scale {
  readonly ticks: readonly { readonly value: number; readonly label: string }[];
  position(value: number): number;
}

export function linearScale(min: number, max: number, count: number): Scale {
  const span = max > min ? max - min : Math.abs(max) || 1;
  const raw = span / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5].find((factor) => factor * power >= raw) ?? 10) * power;
  const first = Math.floor(min / step);
  const last = Math.max(Math.ceil(max / step), first + 1);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return {
    ticks: Array.from({ length: last - first + 1 }, (_, i) => {
      const value = (first + i) * step;
      return { value, label: value.toFixed(decimals) };
    }),
    position: (value) => (value / step - first) / (last - first),
  };
}

export function logScale(from: number, max: number): Scale {
  const decades = max > from ? Math.ceil(Math.log10(max / from) - 1e-9) : 1;
  return {
    ticks: Array.from({ length: decades + 1 }, (_, i) => {
      const value = from * 10 ** i;
      return { value, label: String(value) };
    }),
    position: (value) => (value > from ? Math.log10(value / from) / decades : 0),
  };
}

/** The axis ends where the values end, not at the next tick. */
export function exactScale(min: number, max: number, count: number): Scale {
  if (!(max > min)) return { ticks: [{ value: min, label: String(min) }], position: () => 0.5 };
  return {
    ticks: linearScale(min, max, count).ticks.filter(({ value }) => value >= min && value <= max),
    position: (value) => (value - min) / (max - min),
  };
}

/** Rounds a coordinate to a tenth of a pixel: finer is invisible and doubles the file. */
export function pixel(value: number): string {
  return String(Math.round(value * 10) / 10);
}

export function extent(values: Iterable<number>): { min: number; max: number } {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return { min, max };
}

/** Where the lines of a chart are. */
export interface PlotBox {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

interface PixelOf {
  px(x: number): string;
  py(y: number): string;
}

export function pixelsIn({ left, top, width, height }: PlotBox, xScale: Scale, yScale: Scale): PixelOf {
  return {
    px: (value) => pixel(left + width * xScale.position(value)),
    py: (value) => pixel(top + height - height * yScale.position(value)),
  };
}

/** Lines at the ticks of both axes, and the labels of the y axis. */
export function drawGrid(box: PlotBox, xScale: Scale, yScale: Scale): string[] {
  const { left, top, width, height } = box;
  const [right, bottom] = [left + width, top + height];
  const { px, py } = pixelsIn(box, xScale, yScale);
  return [
    ...yScale.ticks.flatMap(({ value, label }) => [
      `<line class="grid" x1="${left}" x2="${right}" y1="${py(value)}" y2="${py(value)}"/>`,
      `<text class="muted" x="${left - 8}" y="${py(value)}" dy="4" text-anchor="end">${label}</text>`,
    ]),
    ...xScale.ticks.map(
      ({ value }) => `<line class="grid" x1="${px(value)}" x2="${px(value)}" y1="${top}" y2="${bottom}"/>`,
    ),
    `<path class="axis" fill="none" d="M${left} ${top}V${bottom}H${right}"/>`,
  ];
}

interface PixelLine extends PixelOf {
  readonly x: readonly number[];
  readonly values: ReadonlyArray<number | null>;
}

/** A line with gaps where values are missing. */
export function drawLine(classes: string, { x, values, px, py }: PixelLine): string[] {
  return unbroken(x, values).map((part) => {
    const points = part.map(({ at, value }) => `${px(at)},${py(value)}`).join(' ');
    return `<polyline class="line ${classes}" points="${points}"/>`;
  });
}

interface ChartPoint {
  readonly at: number;
  readonly value: number;
}

/** The points between gaps. */
function unbroken(x: readonly number[], values: ReadonlyArray<number | null>): ChartPoint[][] {
  const parts: ChartPoint[][] = [];
  let part: ChartPoint[] | undefined;
  for (const [i, at] of x.entries()) {
    const value = values[i];
    if (value === null) {
      part = undefined;
      continue;
    }
    if (part === undefined) {
      part = [];
      parts.push(part);
    }
    part.push({ at, value });
  }
  return parts;
}
