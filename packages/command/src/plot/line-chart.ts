/** The file is self-contained; its colours follow the reader's light or dark scheme. */

import { drawGrid, drawLine, exactScale, extent, linearScale, logScale, pixel, pixelsIn, type Scale } from './axes.js';
import { CHART_WIDTH, escapeXml, HUES, svgDocument } from './svg.js';

/** One line. */
export interface ChartSeries {
  /** In the legend. */
  readonly name: string;
  /** One value for each x; null leaves a gap in the line. */
  readonly values: readonly (number | null)[];
  /** Half the length of the error bar of each value, 0 for none; then the values have marks. */
  readonly errors?: readonly number[];
}

/** One panel: an axis and the lines drawn over it. */
export interface ChartPanel {
  /** What the axis shows, with its unit. */
  readonly yLabel: string;
  /** Lines; each has as many values as the chart has x values. */
  readonly series: readonly ChartSeries[];
  /**
   * Makes the axis logarithmic from this value up, and its label say so; smaller values are drawn on it. Linear if left
   * out.
   */
  readonly logFrom?: number;
}

/** A chart: panels above each other over one x axis. */
export interface LineChart {
  /** Above the chart. */
  readonly title: string;
  /** Below the title. */
  readonly subtitle: string;
  /** With its unit. */
  readonly xLabel: string;
  /** Ascending. */
  readonly x: readonly number[];
  /** Names of the x values, where these are not numbers: one for each. */
  readonly xNames?: readonly string[];
  /** True: a logarithmic x axis, for values above 0. */
  readonly hasLogX?: boolean;
  /** From above. */
  readonly panels: readonly ChartPanel[];
}

const LEFT = 84;
const RIGHT = 32;
const HEADER_HEIGHT = 64;
const PLOT_HEIGHT = 220;
const LEGEND_ROW_HEIGHT = 20;
const PANEL_GAP = 26;
const FOOTER_HEIGHT = 52;
const PLOT_WIDTH = CHART_WIDTH - LEFT - RIGHT;
/** Mean width of a character of the 13 px legend: an estimate on the wide side, since text cannot be measured here. */
const LEGEND_CHARACTER_WIDTH = 7.5;
const LEGEND_KEY_WIDTH = 30;
const LEGEND_SPACING = 18;

interface LegendEntry {
  readonly x: number;
  readonly row: number;
  readonly series: number;
}

function layOutLegend(series: readonly ChartSeries[]): { entries: LegendEntry[]; rows: number } {
  const entries: LegendEntry[] = [];
  let x = 0;
  let row = 0;
  series.forEach(({ name }, index) => {
    const width = LEGEND_KEY_WIDTH + name.length * LEGEND_CHARACTER_WIDTH;
    if (x > 0 && x + width > PLOT_WIDTH) {
      x = 0;
      row++;
    }
    entries.push({ x: LEFT + x, row, series: index });
    x += width + LEGEND_SPACING;
  });
  return { entries, rows: row + 1 };
}

function renderPanel(
  panel: ChartPanel,
  x: readonly number[],
  xScale: Scale,
  top: number,
): { svg: string[]; bottom: number } {
  const legend = layOutLegend(panel.series);
  const plotTop = top + legend.rows * LEGEND_ROW_HEIGHT;
  const bottom = plotTop + PLOT_HEIGHT;
  const drawn = panel.series.flatMap(({ values: own, errors }) => ends(own, errors)).filter((value) => value !== null);
  const values = extent(drawn.length === 0 ? [0] : drawn);
  const yScale =
    panel.logFrom === undefined
      ? linearScale(Math.min(0, values.min), values.max, 5)
      : logScale(panel.logFrom, values.max);
  const box = { left: LEFT, top: plotTop, width: PLOT_WIDTH, height: PLOT_HEIGHT };
  const { px, py } = pixelsIn(box, xScale, yScale);
  const svg = drawGrid(box, xScale, yScale);
  const label = panel.logFrom === undefined ? panel.yLabel : `${panel.yLabel}, logarithmic`;
  const middle = plotTop + PLOT_HEIGHT / 2;
  svg.push(
    `<text x="22" y="${middle}" text-anchor="middle" transform="rotate(-90 22 ${middle})">${escapeXml(label)}</text>`,
  );
  panel.series.forEach((series, index) => {
    const hue = index % HUES;
    svg.push(...drawLine(`hue${hue}`, { x, values: series.values, px, py }));
    if (series.errors === undefined) return;
    for (const [i, at] of x.entries()) {
      const value = series.values[i];
      const error = series.errors[i];
      if (value === null) continue;
      svg.push(`<circle class="fill${hue}" cx="${px(at)}" cy="${py(value)}" r="3"/>`);
      if (error > 0) {
        svg.push(`<path class="line hue${hue}" d="M${px(at)} ${py(value - error)}V${py(value + error)}"/>`);
      }
    }
  });
  for (const entry of legend.entries) {
    const y = top + entry.row * LEGEND_ROW_HEIGHT + 6;
    const hue = entry.series % HUES;
    svg.push(`<line class="line hue${hue}" x1="${entry.x}" x2="${entry.x + 22}" y1="${y}" y2="${y}"/>`);
    svg.push(
      `<text x="${entry.x + LEGEND_KEY_WIDTH}" y="${y}" dy="4">${escapeXml(panel.series[entry.series].name)}</text>`,
    );
  }
  return { svg, bottom };
}

function ends(values: ChartSeries['values'], errors: ChartSeries['errors']): ChartSeries['values'] {
  if (errors === undefined) return values;
  return values.flatMap((value, i) => (value === null ? [] : [value - errors[i], value + errors[i]]));
}

function scaleOfX({ x, xNames, hasLogX = false }: LineChart): Scale {
  const { min, max } = extent(x);
  if (xNames !== undefined || max === min) {
    // Names are centred, so they need room on both sides.
    return {
      ticks: x.map((value, i) => ({ value, label: xNames?.[i] ?? String(value) })),
      position: (value) => (value - min + 0.5) / (max - min + 1),
    };
  }
  if (hasLogX) {
    const scale = logScale(min, max);
    const last = scale.position(max);
    return {
      ticks: scale.ticks.filter(({ value }) => value <= max),
      position: (value) => scale.position(value) / last,
    };
  }
  return exactScale(min, max, 8);
}

export function renderLineChart(chart: LineChart): string {
  const xScale = scaleOfX(chart);
  const body: string[] = [];
  let bottom = HEADER_HEIGHT;
  for (const [index, panel] of chart.panels.entries()) {
    const rendered = renderPanel(panel, chart.x, xScale, bottom + (index === 0 ? 0 : PANEL_GAP));
    body.push(...rendered.svg);
    bottom = rendered.bottom;
  }
  for (const { value, label } of xScale.ticks) {
    const at = pixel(LEFT + PLOT_WIDTH * xScale.position(value));
    body.push(`<text class="muted" x="${at}" y="${bottom + 18}" text-anchor="middle">${label}</text>`);
  }
  body.push(
    `<text x="${LEFT + PLOT_WIDTH / 2}" y="${bottom + 40}" text-anchor="middle">${escapeXml(chart.xLabel)}</text>`,
  );
  return svgDocument({
    title: chart.title,
    subtitle: chart.subtitle,
    left: LEFT,
    height: bottom + FOOTER_HEIGHT,
    body,
  });
}
