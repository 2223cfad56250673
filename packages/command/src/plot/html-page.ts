import { PARTS_CSS } from './parts-style.js';
import { escapeXml } from './svg.js';

const STYLE = `
${PARTS_CSS}
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;max-width:960px;margin:2rem auto;padding:0 1rem;color:var(--text);background:var(--panel)}
a{color:var(--accent)}
svg{max-width:100%;height:auto}
table{border-collapse:collapse;margin:1rem 0;font-size:13px;display:block;overflow-x:auto}
th,td{padding:.2rem .8rem;text-align:right;border-bottom:1px solid var(--grid)}
th:first-child,td:first-child{text-align:left}
.failed{color:var(--bad);font-weight:600}
.passed{color:var(--good)}
.unsure{color:var(--fair)}
td.text{text-align:left}
code{font-size:13px}
pre{font-size:12px;overflow-x:auto}
h3{margin:1.5rem 0 .2rem;font-size:15px}
.origin{font-size:13px;color:var(--muted)}
.differs{font-size:13px;border-left:3px solid var(--hue1);padding-left:.8rem}
@media screen and (prefers-color-scheme:dark){body{background:var(--page)}}
`;

export function htmlPage(title: string, body: readonly string[]): string {
  return [
    '<!doctype html>',
    '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
    `<title>${escapeXml(title)}</title><style>${STYLE}</style></head><body>`,
    ...body,
    '</body></html>',
    '',
  ].join('\n');
}

export function htmlTable(titles: readonly string[], rows: ReadonlyArray<readonly (string | number)[]>): string {
  const line = (cells: readonly (string | number)[], tag: string) =>
    `<tr>${cells.map((cell) => `<${tag}>${escapeXml(String(cell))}</${tag}>`).join('')}</tr>`;
  return `<table>${line(titles, 'th')}${rows.map((row) => line(row, 'td')).join('')}</table>`;
}
