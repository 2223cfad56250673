/** The style of verdicts, bars, charts and ladders, and the palette: pages adopt it, reports contain it. */

import { COLORS } from './colors.js';
import { PALETTE_CSS } from './palette.js';

/** Of packets in ladders, players and legends; later ones count more. */
const KINDS = {
  ack: COLORS.ack,
  request: COLORS.request,
  repeated: COLORS.repeated,
  nak: COLORS.nak,
  cnp: COLORS.cnp,
  dropped: COLORS.lost,
} as const;

const ofKinds = Object.entries(KINDS).map(
  ([kind, color]) => `.packet.${kind},.key.${kind},.rung.${kind}{--kind:var(${color})}`,
);
const ofTones = ['good', 'fair', 'bad'].map(
  (tone) => `.verdict.${tone}{border-color:var(--${tone})}.verdict.${tone} strong{color:var(--${tone})}`,
);
const ofLines = ['hue0', 'hue1', 'hue2', 'hue3', 'hue4', 'hue5', 'hue6', 'hue7', 'bad'].map(
  (name) => `.plot .${name}{stroke:var(--${name})}.swatch.${name}{background:var(--${name})}`,
);

export const PARTS_CSS = [
  PALETTE_CSS,
  '.verdict{margin:0 0 .75rem;padding:.5rem .75rem;border-left:4px solid var(--muted);background:var(--page)}',
  ...ofTones,
  '.verdict strong::after{content:"."}',
  '.story{display:flex;flex-wrap:wrap;align-items:center;gap:.5rem 1.5rem;color:var(--muted)}',
  '.story output{flex:1;min-width:min(24rem,100%);color:var(--text);font-variant-numeric:tabular-nums}',
  '.key,.swatch{display:inline-block;width:.9rem;height:.9rem;margin-right:.35rem;border-radius:3px;vertical-align:-.1rem}',
  '.key{background:var(--kind)}',
  `.packet,.key,.rung{--kind:var(${COLORS.data})}`,
  ...ofKinds,
  '.bar-row{margin-bottom:.75rem}',
  '.bar-line{display:grid;grid-template-columns:minmax(0,1fr) 6.5rem;align-items:center;gap:.75rem;font-variant-numeric:tabular-nums}',
  '.bar-line .track{display:block;height:1rem;border-radius:.25rem;background:var(--grid)}',
  '.bar-line .swatch{display:block;height:100%;margin:0;border-radius:.25rem}',
  '.chart{position:relative;min-height:200px}',
  '.chart-note{position:absolute;z-index:1;top:60px;right:1.5rem;left:6rem;margin:0;padding:.4rem .6rem;border-radius:6px;' +
    'background:var(--page);color:var(--muted);text-align:center;pointer-events:none}',
  '.plot{display:block;touch-action:pan-y}',
  '.plot text{fill:var(--muted);font-size:12px;font-variant-numeric:tabular-nums}',
  '.plot .mark,.plot .cursor{stroke:var(--text);stroke-dasharray:4 3}',
  '.plot .mark-text{fill:var(--text);font-size:11px}',
  '.plot .grid{stroke:var(--grid)}',
  '.plot .axis{stroke:var(--muted)}',
  '.plot .line{fill:none;stroke-width:2;stroke-linejoin:round}',
  ...ofLines,
  '.plot .dashed{stroke-dasharray:6 4}',
  '.plot .dot{fill:var(--panel);stroke-width:2}',
  '.plot .selection{fill:var(--accent);opacity:.18}',
  '.plot-area{fill:transparent}',
  '.chart-legend{margin:.25rem auto 0;border-collapse:collapse;font-size:.9rem;text-align:center}',
  '.chart-legend tr{display:inline-block;margin:0 .5rem;white-space:nowrap}',
  '.chart-legend th,.chart-legend td{display:inline-block;padding:0;border:0;font-weight:400;vertical-align:middle}',
  '.chart-legend td{min-width:4.5rem;padding-left:.5rem;text-align:left;font-variant-numeric:tabular-nums}',
  '.ladder{display:block;width:100%}',
  '.ladder text{fill:var(--text);font-size:12px;font-variant-numeric:tabular-nums}',
  '.ladder .end{font-size:14px;font-weight:600}',
  '.ladder .time,.ladder .pause{fill:var(--muted)}',
  '.ladder .life{stroke:var(--muted);stroke-width:2}',
  '.rung line,.rung .cross{stroke:var(--kind);stroke-width:1.5;fill:none}',
  '.rung .cross{stroke-width:3}',
  '.ladder .rung .name,.rung .head{fill:var(--kind)}',
  '.rung .hit{fill:transparent}',
  '.rung.chosen .hit{fill:color-mix(in srgb,var(--accent) 20%,transparent)}',
  '.rung.chosen line{stroke-width:3}',
  '.rung.fold line{stroke-width:9;opacity:.4}',
].join('\n');
