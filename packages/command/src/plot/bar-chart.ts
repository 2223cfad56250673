import { CHART_WIDTH, escapeXml, HUES, svgDocument } from './svg.js';

interface Bar {
  readonly label: string;
  readonly value: number;
  readonly group: number;
}

interface BarChart {
  readonly title: string;
  readonly subtitle: string;
  readonly bars: readonly Bar[];
  readonly format: (value: number) => string;
}

const LEFT = 240;
const RIGHT = 120;
const HEADER_HEIGHT = 64;
const ROW_HEIGHT = 26;
const BAR_HEIGHT = 18;
const FOOTER_HEIGHT = 16;

export function renderBarChart({ title, subtitle, bars, format }: BarChart): string {
  const most = Math.max(...bars.map(({ value }) => value), 0);
  const height = HEADER_HEIGHT + bars.length * ROW_HEIGHT + FOOTER_HEIGHT;
  const rows = bars.map(({ label, value, group }, i) => {
    const top = HEADER_HEIGHT + i * ROW_HEIGHT;
    const width = most === 0 ? 0 : Math.round((value / most) * (CHART_WIDTH - LEFT - RIGHT) * 10) / 10;
    const middle = top + BAR_HEIGHT / 2;
    return [
      `<text x="${LEFT - 10}" y="${middle}" dy="4" text-anchor="end">${escapeXml(label)}</text>`,
      `<rect class="fill${group % HUES}" x="${LEFT}" y="${top}" width="${width}" height="${BAR_HEIGHT}"/>`,
      `<text class="muted" x="${LEFT + width + 8}" y="${middle}" dy="4">${escapeXml(format(value))}</text>`,
    ].join('');
  });
  const axis = `<path class="axis" fill="none" d="M${LEFT} ${HEADER_HEIGHT - 6}V${height - FOOTER_HEIGHT}"/>`;
  return svgDocument({ title, subtitle, left: LEFT, height, body: [...rows, axis] });
}
