// Writes the tables of schemes in docs/congestion-control.md and docs/recovery.md from the registries, as built:
// `npm run build && node scripts/schemes-doc.js`. With --check it only says whether the pages have what it would write.
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { rateControls } from '../build/src/dcqcn/rate-controls.js';
import { recoverySchemes } from '../build/src/retransmit/recovery-schemes.js';
import { withRegion } from './marked-region.js';

const PAGES = [
  ['congestion-control.md', rateControls],
  ['recovery.md', recoverySchemes],
];

const UNITS = { Bps: ['b/s', 'kb/s', 'Mb/s', 'Gb/s'], Bytes: ['B', 'KB', 'MB', 'GB'], Ns: ['ns', 'us', 'ms', 's'] };

/** The number with the unit that the end of its name says: 55000 of rateTimerNs is 55 us. */
function textOf(key, number) {
  const [, units] = Object.entries(UNITS).find(([ending]) => key.endsWith(ending)) ?? [];
  if (units === undefined || number === 0) return String(number);
  const power = Math.min(units.length - 1, Math.floor(Math.log10(number) / 3));
  return `${number / 1000 ** power} ${units[power]}`;
}

function tableOf({ definitions }) {
  const rows = definitions.map(({ name, summary, parameters }) => {
    const words = Object.entries(parameters).map(([key, { default: usual }]) => `\`${key}\` ${textOf(key, usual)}`);
    return `| \`${name}\` | ${summary} | ${words.join(', ')} |`;
  });
  return ['| name | what it does | parameters and their defaults |', '|---|---|---|', ...rows, ''].join('\n');
}

for (const [page, registry] of PAGES) {
  const url = new URL(`../docs/${page}`, import.meta.url);
  const text = readFileSync(url, 'utf8');
  const wanted = withRegion(text, 'the table', tableOf(registry));
  if (!process.argv.includes('--check')) writeFileSync(url, wanted);
  else if (text !== wanted) {
    console.error(`docs/${page} is not what the registry says: npm run build && node scripts/schemes-doc.js`);
    process.exitCode = 1;
  }
}
