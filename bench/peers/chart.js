// @ts-check
/** Bar charts as one SVG file that stands alone and follows the reader's light or dark scheme. */

const WIDTH = 900;
const LABEL_WIDTH = 250;
const VALUE_WIDTH = 110;
const BAR_HEIGHT = 18;
const BAR_GAP = 6;
const TITLE_HEIGHT = 44;
const PAD = 16;
const CUT_OFF_FACTOR = 4;

const STYLE = `
.background{fill:#fff}text{fill:#1c1917;font:13px system-ui,sans-serif}.title{font-weight:600;font-size:14px}.muted{fill:#78716c}
.ours{fill:#0060a8}.theirs{fill:#a8a29e}.spread{stroke:#1c1917;stroke-width:1.5}
@media(prefers-color-scheme:dark){.background{fill:#1c1917}text{fill:#f5f5f4}.muted{fill:#a8a29e}.ours{fill:#60a5fa}.theirs{fill:#57534e}.spread{stroke:#f5f5f4}}`;

const escape_ = (/** @type {string} */ text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const number = (/** @type {number} */ value) =>
  value >= 999.5 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);

const descending = (/** @type {number} */ a, /** @type {number} */ b) => b - a;

/** One chart a measure: a bar for the median, a line from the smallest to the largest value. @param {any} document */
export function barCharts(document) {
  const parts = [];
  let y = PAD;
  for (const { title, unit, better, rows: all } of document.measures) {
    const rows = all.filter((/** @type {any} */ row) => row.median !== null);
    if (rows.length === 0) continue;
    parts.push(
      `<text class="title" x="${PAD}" y="${y + 16}">${escape_(title)}</text>`,
      `<text class="muted" x="${PAD}" y="${y + 33}">${unit}; ${better} is better</text>`,
    );
    y += TITLE_HEIGHT;
    // Somebody far beyond all others is cut off, so that the others can be told apart.
    const [longest, next] = rows.map((/** @type {any} */ row) => row.max).toSorted(descending);
    const most = longest > CUT_OFF_FACTOR * next ? 1.5 * next : longest;
    const clip = (/** @type {number} */ value) => Math.max(0, Math.min(value, most));
    const scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH - 2 * PAD) / most;
    const left = PAD + LABEL_WIDTH;
    for (const row of rows) {
      const own =
        row.name.startsWith('rocev2') ||
        !(row.name.startsWith('node:') || rows.some((/** @type {any} */ r) => r.name.startsWith('rocev2')));
      const middle = y + BAR_HEIGHT / 2;
      parts.push(
        `<text x="${left - 8}" y="${y + 14}" text-anchor="end">${escape_(row.name)}</text>`,
        `<rect class="${own ? 'ours' : 'theirs'}" x="${left}" y="${y}" width="${Math.max(1, clip(row.median) * scale).toFixed(1)}" height="${BAR_HEIGHT}" rx="2"/>`,
        `<line class="spread" x1="${(left + clip(row.min) * scale).toFixed(1)}" x2="${(left + clip(row.max) * scale).toFixed(1)}" y1="${middle}" y2="${middle}"/>`,
        `<text x="${(left + clip(row.max) * scale + 8).toFixed(1)}" y="${y + 14}">${row.max > most ? '» ' : ''}${number(row.median)}</text>`,
      );
      y += BAR_HEIGHT + BAR_GAP;
    }
    y += PAD;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}"><title>rocev2 and what else moves bytes between two Node processes</title><style>${STYLE}</style>
<rect class="background" width="${WIDTH}" height="${y}"/>
${parts.join('\n')}
</svg>
`;
}
