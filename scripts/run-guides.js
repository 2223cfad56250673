// @ts-check
/**
 * Runs the commands of the guides and writes what they print behind them, so that a guide never shows what the program does not do.
 *
 *   node scripts/run-guides.js [docs/guides/NAME.md ...]
 *
 * In a block marked `console`, each line `$ command` is run, in one shell a block and one temporary folder a guide; the lines after it, up to the next
 * command, are replaced by its output. A command that ends in `&` stays in the background until its block ends; its output is not shown. `rocev2` is
 * this checkout's. Long output is cut.
 */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const GUIDES = path.join(ROOT, 'docs/guides');
const LINE_MAX = 160;
const OUTPUT_LINES_MAX = 60;
const MARK = '@@ output of command';
/** For a background command to be ready. */
const START_SECONDS = 2;

/** Where `rocev2` is this checkout's. */
const bin = mkdtempSync(path.join(tmpdir(), 'rocev2-bin-'));
symlinkSync(path.join(ROOT, 'packages/cli/bin/rocev2.js'), path.join(bin, 'rocev2'));

const files =
  process.argv.length > 2
    ? process.argv.slice(2)
    : readdirSync(GUIDES)
        .filter((name) => name.endsWith('.md'))
        .map((name) => path.join(GUIDES, name));

for (const file of files) {
  const folder = mkdtempSync(path.join(tmpdir(), 'rocev2-guide-'));
  const text = readFileSync(file, 'utf8');
  const shown = text.replaceAll(
    /^```console\n([\s\S]*?)^```$/gm,
    (_, block) => `\`\`\`console\n${runBlock(block, folder)}\`\`\``,
  );
  writeFileSync(file, shown);
  console.log(file);
}

/**
 * @param {string} block
 * @param {string} folder
 */
function runBlock(block, folder) {
  const commands = block
    .split('\n')
    .filter((line) => line.startsWith('$ '))
    .map((line) => line.slice(2));
  const script = [
    'set -m', // Jobs have numbers, and process groups of their own.
    ...commands.map((command, i) =>
      command.endsWith('&')
        ? `echo "${MARK} ${i}"\n>/dev/null 2>&1 ${command}\nsleep ${START_SECONDS}`
        : `echo "${MARK} ${i}"\n${command}\ncode=$?; [ $code -le 1 ] || { echo "$code" >&2; exit 97; }`,
    ),
    'kill -INT $(jobs -p) 2>/dev/null; wait',
  ].join('\n');
  const { stdout, stderr, status } = spawnSync('bash', ['-c', script], {
    cwd: folder,
    env: { ...process.env, PATH: `${bin}:${process.env['PATH']}`, NO_COLOR: '1' },
    encoding: 'utf8',
  });
  if (status === 97) throw new Error(`a command of this block failed:\n${block}\n${stderr}`);
  const outputs = stdout.split(new RegExp(`^${MARK} \\d+\\n`, 'm')).slice(1);
  return commands.map((command, i) => `$ ${command}\n${cut(outputs[i] ?? '')}`).join('');
}

/** @param {string} output */
function cut(output) {
  const lines = output.trimEnd().split('\n').slice(0, OUTPUT_LINES_MAX);
  return lines
    .map((line) => `${line.slice(0, LINE_MAX).trimEnd()}\n`)
    .join('')
    .replace(/^\n$/, '');
}
