export const CHART_WIDTH = 960;
const TITLE_Y = 26;
const SUBTITLE_Y = 46;

const LIGHT_HUES = [
  '#0060a8', '#c2410c', '#15803d', '#a21caf', '#a16207', '#0e7490', '#be123c', '#4d7c0f', '#6d28d9', '#57534e',
]; // biome-ignore format: one palette a line
const DARK_HUES = [
  '#60a5fa', '#fb923c', '#4ade80', '#e879f9', '#facc15', '#22d3ee', '#fb7185', '#a3e635', '#a78bfa', '#d6d3d1',
]; // biome-ignore format: one palette a line

export const HUES = LIGHT_HUES.length;

function chartStyleSheet(): string {
  const scheme = (text: string, muted: string, grid: string, background: string, hues: readonly string[]): string =>
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
    scheme('#1c1917', '#57534e', '#e7e5e4', '#ffffff', LIGHT_HUES),
    `@media (prefers-color-scheme:dark){${scheme('#f5f5f4', '#a8a29e', '#3a3633', '#161412', DARK_HUES)}}`,
  ].join('\n');
}

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
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
