// `npm run build && node scripts/trace-hashes.js`: packages/lab/docs/trace-hashes.md, the trace hashes of the catalogue in Node.js, Chromium and
// Firefox. test/browser/page.itest.ts simulates again and compares.
import { writeFileSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { BUILT_IN_SCENARIOS, simulate } from '@rocev2/lab/sim';
import { build } from 'esbuild';

/** @typedef {import('@rocev2/lab/sim').ScenarioFile} ScenarioFile */

export const DOCUMENT = fileURLToPath(new URL('../packages/lab/docs/trace-hashes.md', import.meta.url));

/**
 * Long enough for packets in each: the first flows of some workloads arrive late.
 * @param {ScenarioFile} scenario
 * @returns {ScenarioFile}
 */
function short(scenario) {
  const duration = /^(?:fct|chunks)-/.test(scenario.name) ? '3ms' : '100us';
  return { ...scenario, duration, warmup: 0, sample: '10us', assertions: [] };
}

/** The scenarios of the catalogue, cut short. */
export const SHORT_SCENARIOS = BUILT_IN_SCENARIOS.map(short);

export async function hashesInNode() {
  const hashes = [];
  for (const scenario of SHORT_SCENARIOS) hashes.push((await simulate(scenario)).traceHash);
  return hashes;
}

/** The simulator as a script that a page evaluates, before it evaluates `hashesInPage`. */
export async function simulatorForPages() {
  const { outputFiles } = await build({
    stdin: { contents: "export { simulate } from '@rocev2/lab/sim';", resolveDir: 'examples' },
    bundle: true,
    minify: true,
    platform: 'browser',
    format: 'iife',
    globalName: 'bundled',
    write: false,
    logLevel: 'error',
  });
  return `${outputFiles[0].text}; globalThis.bundled = bundled;`;
}

/**
 * For a page of any browser.
 * @param {readonly ScenarioFile[]} scenarios
 * @returns {Promise<string[]>}
 */
export async function hashesInPage(scenarios) {
  const { simulate: run } = Reflect.get(globalThis, 'bundled');
  const hashes = [];
  for (const scenario of scenarios) hashes.push((await run(scenario)).traceHash);
  return hashes;
}

/**
 * The rows of the document.
 * @param {ReadonlyArray<readonly string[]>} engines
 */
export function hashRows(engines) {
  return SHORT_SCENARIOS.map(({ name }, i) => `| ${name} | ${engines.map((hashes) => hashes[i]).join(' | ')} |`);
}

async function main() {
  const { chromium } = await import('playwright-core');
  const { default: puppeteer } = await import('puppeteer-core');
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const program = await simulatorForPages();
  const node = await hashesInNode();
  const engines = [node];
  const versions = [`Node.js ${process.versions.node}`];
  const browsers = [
    () => chromium.launch({ executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium', args }),
    () => puppeteer.launch({ browser: 'firefox', executablePath: process.env['FIREFOX'] ?? '/usr/bin/firefox-esr' }),
  ];
  for (const launch of browsers) {
    const browser = await launch();
    versions.push(await browser.version());
    /** @type {any} */
    const page = await browser.newPage();
    await page.evaluate(program);
    engines.push(await page.evaluate(hashesInPage, SHORT_SCENARIOS));
    await browser.close();
  }
  const lines = [
    '# Trace hashes in three engines',
    '',
    'Each scenario of the catalogue, cut to 100 us (workloads: 3 ms), has the same trace hash in Node.js, Chromium and',
    'Firefox: the same packets leave at the same times. `node scripts/trace-hashes.js` writes this page, and',
    '`npm run test:browser` simulates again in all three.',
    '',
    `Versions: ${versions.join(', ')}.`,
    '',
    '| scenario | Node.js | Chromium | Firefox |',
    '|---|---|---|---|',
    ...hashRows(engines),
    '',
  ];
  writeFileSync(DOCUMENT, lines.join('\n'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
