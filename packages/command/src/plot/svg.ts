import { DARK, LIGHT, type Palette } from './palette.js';

export const CHART_WIDTH = 960;
const TITLE_Y = 26;
const SUBTITLE_Y = 46;

/** Names of colours, in the order of the lines of a chart. */
const LINES = ['hue0', 'hue1', 'hue2', 'hue3', 'hue4', 'hue5', 'bad', 'hue6', 'hue7'] as const;
const linesOf = (palette: Palette, last: string) => [...LINES.map((name) => palette[name]), last];

export const HUES = LINES.length + 1;

function chartStyleSheet(): string {
  const scheme = ({ text, muted, grid }: Palette, background: string, hues: readonly string[]): string =>
    [
      `.background{fill:${background}}`,
      `text{fill:${text}}`,
      `.muted{fill:${muted}}`,
      `.grid{stroke:${grid}}`,
      `.axis{stroke:${muted}}`,
      ...hues.map((hue, i) => `.hue${i}{stroke:${hue}}.fill${i}{fill:${hue}}`),
    ].join('');
  return [
    'text{font:13px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}',
    '.title{font-size:18px;font-weight:600}',
    '.grid,.axis{stroke-width:1}',
    '.line{fill:none;stroke-width:1.6;stroke-linejoin:round}',
    scheme(LIGHT, LIGHT.panel, linesOf(LIGHT, LIGHT.muted)),
    `@media (prefers-color-scheme:dark){${scheme(DARK, DARK.page, linesOf(DARK, '#d6d3d1'))}}`,
  ].join('\n');
}

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** Markup of an element. Attributes are escaped; children are markup. */
export function tag(
  name: string,
  attributes: Readonly<Record<string, string | number>>,
  ...children: string[]
): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapeXml(String(value))}"`);
  return `<${name}${written.join('')}>${children.join('')}</${name}>`;
}

export interface SvgDocument {
  readonly title: string;
  readonly subtitle: string;
  readonly left: number;
  readonly height: number;
  readonly body: readonly string[];
}

export function svgDocument({ title, subtitle, left, height, body }: SvgDocument): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${CHART_WIDTH} ${height}" width="${CHART_WIDTH}" height="${height}" role="img">`,
    `<title>${escapeXml(title)}</title>`,
    `<style>${chartStyleSheet()}</style>`,
    `<rect class="background" width="${CHART_WIDTH}" height="${height}"/>`,
    `<text class="title" x="${left}" y="${TITLE_Y}">${escapeXml(title)}</text>`,
    `<text class="muted" x="${left}" y="${SUBTITLE_Y}">${escapeXml(subtitle)}</text>`,
    ...body,
    '</svg>',
    '',
  ].join('\n');
}
