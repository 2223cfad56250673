import { escapeXml } from './svg.js';

const STYLE = `
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;max-width:960px;margin:2rem auto;padding:0 1rem;color:#1c1917;background:#fff}
svg{max-width:100%;height:auto}
table{border-collapse:collapse;margin:1rem 0;font-size:13px;display:block;overflow-x:auto}
th,td{padding:.2rem .8rem;text-align:right;border-bottom:1px solid #e7e5e4}
th:first-child,td:first-child{text-align:left}
.failed{color:#be123c;font-weight:600}
.passed{color:#15803d}
.unsure{color:#b45309}
td.text{text-align:left}
code{font-size:13px}
pre{font-size:12px;overflow-x:auto}
h3{margin:1.5rem 0 .2rem;font-size:15px}
.origin{font-size:13px;color:#57534e}
.differs{font-size:13px;border-left:3px solid #c2410c;padding-left:.8rem}
@media (prefers-color-scheme:dark){body{color:#f5f5f4;background:#161412}a{color:#60a5fa}th,td{border-color:#3a3633}.failed{color:#fb7185}.passed{color:#4ade80}.unsure{color:#fbbf24}.origin{color:#a8a29e}}
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
