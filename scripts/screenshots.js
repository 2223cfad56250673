// Makes the pictures of docs/dashboard.md with the Chromium of this system: npm run build && node scripts/screenshots.js
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const PICTURES = fileURLToPath(new URL('../docs/pictures/', import.meta.url));
const executablePath =
  process.env['CHROMIUM'] ?? ['/usr/bin/chromium', '/usr/bin/google-chrome'].find((path) => existsSync(path));
if (executablePath === undefined) throw new Error('there is no Chromium here; CHROMIUM may name one');

const browser = await chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] });

/** Runs a dashboard, lets `act` play with its page, and takes the picture. */
async function picture(name, args, act) {
  const program = spawn(process.execPath, [MAIN, 'dashboard', '--json', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(program.stdout.setEncoding('utf8'), 'data');
  const page = await browser.newPage({
    viewport: { width: 1200, height: 800 },
    deviceScaleFactor: 0.75,
    colorScheme: 'light',
  });
  await page.goto(JSON.parse(line).url);
  await page.locator('.readouts[data-sample]').waitFor();
  await act(page);
  await page.screenshot({ path: `${PICTURES}${name}.png`, fullPage: true });
  await page.close();
  program.kill('SIGINT');
  await once(program, 'exit');
}

const choose = (page, name) => page.locator('label.choice', { hasText: new RegExp(`^${name}$`) }).click();

await picture('dashboard-livelock', [], async (page) => {
  await delay(8000);
  await choose(page, 'go-back-n');
  await delay(8000);
});
await picture('dashboard-dcqcn', ['-q', '4'], async (page) => {
  for (const name of ['nothing', 'go-back-n', '200 Mb/s, ECN']) await choose(page, name);
  await delay(8000);
  await choose(page, 'dcqcn');
  await delay(15_000);
});
await picture('dashboard-recording', ['--sim', 'dcqcn-n10-85us'], async (page) => {
  for (let i = 0; i < 300; i++) await page.keyboard.press('ArrowRight');
});
await browser.close();
