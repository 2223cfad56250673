/** A page with a chart: the slowest GET of each tenth of a second, milliseconds on a logarithmic scale; grey where the owner computes. */

import { isBusy } from './gets.js';

const [WIDTH, HEIGHT, LEFT, STEP_MS] = [960, 360, 60, 100];
const [LOW_MS, HIGH_MS] = [0.01, 10_000];
const COLORS = ['#0a7d32', '#c2410c', '#1d4ed8'];

export function chart(readers, startMs, seconds) {
  const steps = Math.floor((seconds * 1000) / STEP_MS);
  const x = (step) => LEFT + (step * (WIDTH - LEFT)) / steps;
  const y = (ms) => HEIGHT * (1 - Math.log(Math.max(ms, LOW_MS) / LOW_MS) / Math.log(HIGH_MS / LOW_MS));
  const busy = Array.from({ length: steps }, (_, step) => step).filter((step) => isBusy((step + 0.5) * STEP_MS));
  const shades = busy.map(
    (step) => `<rect x="${x(step)}" y="0" width="${x(1) - x(0)}" height="${HEIGHT}" fill="#e5e5e5"/>`,
  );
  const grid = [0.01, 0.1, 1, 10, 100, 1000].map(
    (ms) =>
      `<line x1="${LEFT}" x2="${WIDTH}" y1="${y(ms)}" y2="${y(ms)}" stroke="#bbb"/><text x="0" y="${y(ms)}">${ms} ms</text>`,
  );
  const lines = readers.map(({ name, samples }, k) => {
    const worst = new Map();
    for (const { askedMs, ms } of samples) {
      const step = Math.floor((askedMs - startMs) / STEP_MS);
      if (step >= 0 && step < steps) worst.set(step, Math.max(worst.get(step) ?? 0, ms));
    }
    const points = [...worst].map(([step, ms]) => `${x(step + 0.5)},${y(ms)}`).join(' ');
    const legend = `<text x="${LEFT + 200 * k}" y="${HEIGHT + 24}" fill="${COLORS[k]}">${name}</text>`;
    return `<polyline points="${points}" fill="none" stroke="${COLORS[k]}" stroke-width="2"/>${legend}`;
  });
  const title = 'The slowest GET of each tenth of a second; grey: the owner computes';
  return `<!doctype html><meta charset="utf-8"><title>${title}</title><body style="font:14px sans-serif"><h1>${title}</h1>
<svg viewBox="0 -16 ${WIDTH} ${HEIGHT + 48}" width="${WIDTH}">${[...shades, ...grid, ...lines].join('\n')}</svg>`;
}
