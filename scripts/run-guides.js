// @ts-check
/**
 * Runs the commands of the guides and writes what they print behind them, so that a guide never shows what the program does not do.
 *
 *   node scripts/run-guides.js [docs/guides/NAME.md ...]
 *
 * In a block marked `console`, each line `$ command` is run in a temporary folder of its own for the guide; the lines after it, up to the next
 * command, are replaced by its output. A command that ends in `&` runs in the background until its block ends; its output is not shown. `rocev2` is the
 * program in `dist`. Lines of more than 160 characters are cut.
 */

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const GUIDES = path.join(ROOT, 'docs/guides');
/** Where `rocev2` is this checkout's. */
const BIN = mkdtempSync(path.join(tmpdir(), 'rocev2-bin-'));
symlinkSync(path.join(ROOT, 'dist/cli/main.js'), path.join(BIN, 'rocev2'));
const LINE_MAX = 160;
const OUTPUT_LINES_MAX = 60;
const START_MS = 2000;

const files =
  process.argv.length > 2
    ? process.argv.slice(2)
    : readdirSync(GUIDES)
        .filter((name) => name.endsWith('.md'))
        .map((name) => path.join(GUIDES, name));

for (const file of files) {
  const folder = mkdtempSync(path.join(tmpdir(), 'rocev2-guide-'));
  const text = readFileSync(file, 'utf8');
  /** @type {string[]} */
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(/^```console\n([\s\S]*?)^```$/gm)) {
    parts.push(text.slice(at, match.index), '```console\n', await runBlock(match[1], folder), '```');
    at = match.index + match[0].length;
  }
  parts.push(text.slice(at));
  writeFileSync(file, parts.join(''));
  console.log(`${file}: ${(parts.length - 1) / 4} blocks`);
}

/**
 * @param {string} block
 * @param {string} folder
 */
async function runBlock(block, folder) {
  const commands = block.split('\n').filter((line) => line.startsWith('$ '));
  /** @type {import('node:child_process').ChildProcess[]} */
  const background = [];
  let shown = '';
  for (const line of commands) {
    shown += `${line}\n`;
    const command = line.slice(2);
    if (command.endsWith('&')) {
      const child = spawn('bash', ['-c', `exec ${command.slice(0, -1)}`], {
        cwd: folder,
        env: environment(),
        stdio: 'ignore',
      });
      background.push(child);
      await delay(START_MS);
    } else shown += outputOf(command, folder);
  }
  for (const child of background) child.kill('SIGINT');
  return shown;
}

/**
 * @param {string} command
 * @param {string} folder
 */
function outputOf(command, folder) {
  const { stdout, stderr, status } = spawnSync('bash', ['-c', command], {
    cwd: folder,
    env: environment(),
    encoding: 'utf8',
  });
  if (status !== 0 && status !== 1) throw new Error(`${command}\nended with ${status}: ${stderr}`);
  const lines = stdout.trimEnd().split('\n').slice(0, OUTPUT_LINES_MAX);
  return `${lines.map((text) => text.slice(0, LINE_MAX).trimEnd()).join('\n')}\n`;
}

/** The shell finds `rocev2`, and nothing is coloured. */
function environment() {
  return { ...process.env, PATH: `${BIN}:${process.env['PATH']}`, NO_COLOR: '1' };
}
