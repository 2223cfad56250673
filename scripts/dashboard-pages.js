// What the scripts that make the pictures of packages/dashboard/docs/dashboard.md share: programs of the built package, and a page in the Chromium of this system.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const MAIN = fileURLToPath(new URL('../packages/cli/bin/rocev2.js', import.meta.url));
/** The folder of a picture: that of the package whose name it begins with. `node scripts/screenshots.js FOLDER` writes all elsewhere. */
const folderOf = (name) =>
  process.argv[2] ??
  fileURLToPath(new URL(`../packages/${name.slice(0, name.indexOf('-'))}/docs/pictures/`, import.meta.url));
const executablePath =
  process.env['CHROMIUM'] ?? ['/usr/bin/chromium', '/usr/bin/google-chrome'].find((path) => existsSync(path));
if (executablePath === undefined) throw new Error('there is no Chromium here; CHROMIUM may name one');

const browser = await chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] });

/** Where programs are found that are to be in a picture, and no others. */
export const runtime = await mkdtemp(join(tmpdir(), 'rocev2-pictures-'));
const env = { ...process.env, XDG_RUNTIME_DIR: runtime };

/** Whatever ends this script ends what it has started. */
const programs = new Set();
process.on('exit', () => {
  for (const program of programs) program.kill('SIGKILL');
});

/** Runs `rocev2 ARGS`. */
export function start(...args) {
  const program = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  programs.add(program.once('exit', () => programs.delete(program)));
  return program;
}

/** Resolves when the program has said `words`, which a busy machine may delay. */
export async function said(program, words) {
  let text = '';
  await new Promise((resolve, reject) => {
    for (const stream of [program.stdout, program.stderr])
      stream.setEncoding('utf8').on('data', (more) => {
        text += more;
        if (words.test(text)) resolve();
      });
    program.once('exit', () => reject(new Error(`it ended before it said ${words}:\n${text}`)));
  });
}

export async function end(program) {
  if (program.exitCode !== null || program.signalCode !== null) return; // As the receiver does when its sender has ended.
  program.kill('SIGINT');
  await once(program, 'exit');
}

/** An empty page. */
export function browserPage(colorScheme) {
  return browser.newPage({ viewport: { width: 1200, height: 800 }, deviceScaleFactor: 0.75, colorScheme });
}

/** Runs a dashboard and lets `act` use its page. */
export async function dashboard(args, colorScheme, act) {
  const program = start('dashboard', '--json', ...args);
  const [line] = await once(program.stdout.setEncoding('utf8'), 'data');
  const page = await browserPage(colorScheme);
  await page.goto(JSON.parse(line).url);
  await page.locator('.readouts[data-sample]').waitFor();
  await act(page);
  await page.close();
  await end(program);
}

/** A picture of the whole page, or of what a screen shows of it. */
export const shoot = (page, name, { fullPage = true } = {}) =>
  page.screenshot({ path: join(folderOf(name), `${name}.png`), fullPage });

export async function finish() {
  await browser.close();
  await rm(runtime, { recursive: true });
}
