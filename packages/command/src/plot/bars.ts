import { escapeXml } from './svg.js';

interface Bar {
  readonly value: number;
  /** What is as long as the track. */
  readonly max: number;
  /** A style property, such as `--hue0`. */
  readonly color: string;
  readonly text: string;
}

export interface BarRow {
  readonly label: string;
  readonly bars: readonly Bar[];
}

/** Names of colours, as markup. */
export function colorLegend(entries: ReadonlyArray<{ readonly label: string; readonly color: string }>): string {
  const keys = entries.map(
    ({ label, color }) => `<span><span class="swatch ${color.slice(2)}"></span>${escapeXml(label)}</span>`,
  );
  return `<p class="story">${keys.join('')}</p>`;
}

/** Bars below each other as markup of a page, one row for each thing that is compared. */
export function barRows(rows: readonly BarRow[]): string {
  return rows
    .map(({ label, bars }) => {
      const lines = bars.map(({ value, max, color, text }) => {
        const width = max > 0 ? Math.min(100, Math.round((value / max) * 1000) / 10) : 0;
        const fill = `<span class="swatch ${color.slice(2)}" style="width:${width}%"></span>`;
        return `<div class="bar-line"><span class="track">${fill}</span>${escapeXml(text)}</div>`;
      });
      return `<div class="bar-row" data-label="${escapeXml(label)}"><strong>${escapeXml(label)}</strong>${lines.join('')}</div>`;
    })
    .join('');
}
