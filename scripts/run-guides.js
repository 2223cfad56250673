// @ts-check
/**
 * Runs the commands of documents, so that a document never shows what the program does not do.
 *
 *   node scripts/run-guides.js [--check] [FILE ...]
 *
 * In a block marked `console`, each line `$ command` is run, in one shell per block and one temporary folder per document. The lines after it, up to the
 * next command, are replaced by its output; with `--check` they are compared with it, and a difference is an error. Of a block to paste,
 * without a language, each line is run if a mark precedes the block; its output is not compared. A command that ends in `&` stays in
 * the background until its block ends. `rocev2` and `npx rocev2` are those of this checkout. Files that a document tells its reader to save are there.
 * Long output is cut. CONTRIBUTING.md lists the marks of a block.
 */

import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { difference, executedBlocks, withOutputs } from './executed-blocks.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const LINE_MAX = 160;
const OUTPUT_LINES_MAX = 60;
const MARK = '@@ output of command';
/** A background command is ready when two others have started and ended: on a busy machine this takes longer. */
const WAIT_FOR_START = 'for i in 1 2; do rocev2 bw --help >/dev/null; done; sleep 1';
/** A server is ready when it names Ctrl-C, or some time after its first line if it prints no more, or goes on printing. */
const READY = /Ctrl-C/;
const QUIET_MS = 5000;
const TALKING_MS = 10_000;
const SILENT_MS = 30_000;
const POLL_MS = 100;
const BLOCK_LIMIT_MS = 180_000;

const bin = mkdtempSync(path.join(tmpdir(), 'rocev2-bin-'));
symlinkSync(path.join(ROOT, 'packages/cli/bin/rocev2.js'), path.join(bin, 'rocev2'));
writeFileSync(
  path.join(bin, 'npx'),
  `#!/bin/sh\n[ "$1" = rocev2 ] || { echo "npx $1: only rocev2 runs here" >&2; exit 96; }\nshift\nexec rocev2 "$@"\n`,
);
chmodSync(path.join(bin, 'npx'), 0o755);

const args = process.argv.slice(2);
const checks = args.includes('--check');
const named = args.filter((arg) => arg !== '--check');
const files = named.length > 0 ? named : documents();
let runs = 0;
for (const file of files) {
  const text = readFileSync(file, 'utf8');
  if (executedBlocks(text).length === 0) continue;
  const began = process.hrtime.bigint();
  const { outputs, problems } = await runDocument(file, text);
  if (!checks) writeFileSync(file, withOutputs(text, outputs));
  const seconds = Number((process.hrtime.bigint() - began) / 1_000_000n) / 1000;
  const count = outputs.filter((output) => output !== undefined).length;
  runs += count;
  console.log(`${file}: ${count} blocks run, ${outputs.length - count} not, ${seconds.toFixed(1)} s`);
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
}
rmSync(bin, { recursive: true });
console.log(`${runs} blocks run`);

/** @returns {string[]} */
function documents() {
  const folders = ['docs', ...readdirSync(path.join(ROOT, 'packages')).map((name) => `packages/${name}`)];
  const found = folders.flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => path.join(folder, name)),
  );
  return ['README.md', ...found]
    .filter((name) => name.endsWith('.md') && !name.includes('node_modules') && !name.startsWith('docs/api'))
    .map((name) => path.join(ROOT, name));
}

/**
 * @param {string} file
 * @param {string} text
 */
async function runDocument(file, text) {
  const folder = mkdtempSync(path.join(tmpdir(), 'rocev2-guide-'));
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  for (const [, name, code] of text.matchAll(/^Save this as `([\w.-]+)`:\n\n```js\n([\s\S]*?)^```$/gm)) {
    writeFileSync(path.join(folder, name), code);
  }
  /** @type {(string[] | undefined)[]} */
  const outputs = [];
  /** @type {string[]} */
  const problems = [];
  /** @type {(() => Promise<void>)[]} */
  const ends = [];
  for (const { line, marks, steps } of executedBlocks(text)) {
    const at = outputs.length;
    outputs.push(undefined);
    if (marks.includes('not run') || marks.includes('needs guest')) continue;
    if (marks.includes('needs root') && process.getuid?.() !== 0) continue;
    const keep = (/** @type {Ended} */ { stdout, stderr, failed }) => {
      const shown = outputsOf(steps.length, stdout);
      outputs[at] = shown;
      if (failed !== undefined) problems.push(`${file}:${line}: ${failed}\n${stderr}`);
      else if (checks) {
        steps.forEach(({ command, output }, i) => {
          const problem = difference(output, shown[i], marks);
          if (problem !== undefined) problems.push(`${file}:${line}: $ ${command}: ${problem}`);
        });
      }
    };
    // A server runs as long as its page takes.
    const limitMs = marks.includes('server') ? undefined : BLOCK_LIMIT_MS;
    const shell = startShell(scriptOf(steps.map(({ command }) => command)), folder, limitMs);
    if (!marks.includes('server')) {
      keep(await shell.ended);
      continue;
    }
    ends.unshift(async () => {
      shell.interrupt();
      keep({ ...(await shell.ended), failed: undefined });
    });
    await shell.ready();
  }
  for (const end of ends) await end();
  rmSync(folder, { recursive: true, force: true });
  return { outputs, problems };
}

/** @param {readonly string[]} commands */
function scriptOf(commands) {
  return [
    'set -m', // Jobs have numbers, and their own process groups.
    ...commands.map((command, i) =>
      command.endsWith('&')
        ? `echo "${MARK} ${i}"\n>/dev/null 2>&1 ${command}\n${WAIT_FOR_START}`
        : `echo "${MARK} ${i}"\n${command}\ncode=$?; [ $code -le 1 ] || { echo "exit code $code" >&2; exit 97; }`,
    ),
    'kill -INT $(jobs -p) 2>/dev/null; wait',
  ].join('\n');
}

/** @typedef {{ stdout: string, stderr: string, failed: string | undefined }} Ended */

/**
 * @param {string} script
 * @param {string} folder
 * @param {number} [limitMs]
 */
function startShell(script, folder, limitMs) {
  const child = spawn('bash', ['-c', script], {
    cwd: folder,
    env: { ...process.env, PATH: `${bin}:${process.env['PATH']}`, NO_COLOR: '1', HOME: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (/** @type {string} */ part) => {
    stdout += part;
  });
  child.stderr.setEncoding('utf8').on('data', (/** @type {string} */ part) => {
    stderr += part;
  });
  const ready = async () => {
    const startedMs = Date.now();
    let [shown, firstMs, lastMs] = ['', 0, 0];
    for (let nowMs = startedMs; !READY.test(shown); nowMs = Date.now()) {
      const all = (stdout + stderr).replace(new RegExp(`^${MARK} \\d+\\n`, 'gm'), '');
      if (all !== shown) [shown, firstMs, lastMs] = [all, firstMs || nowMs, nowMs];
      if (shown === '' ? nowMs - startedMs > SILENT_MS : nowMs - lastMs > QUIET_MS || nowMs - firstMs > TALKING_MS)
        return;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  };
  let isLate = false;
  // Job control gives each command a process group: its children are those of the shell.
  const interrupt = () => spawn('pkill', ['-INT', '-P', String(child.pid)]);
  const late = () => {
    isLate = true;
    interrupt();
  };
  const limit = limitMs === undefined ? undefined : setTimeout(late, limitMs);
  /** @type {Promise<Ended>} */
  const ended = new Promise((resolve) =>
    child.on('close', (code) => {
      clearTimeout(limit);
      const failed = isLate
        ? `not done after ${(limitMs ?? 0) / 1000} s`
        : code === 97
          ? 'a command failed'
          : undefined;
      resolve({ stdout, stderr, failed });
    }),
  );
  return { ended, interrupt, ready };
}

/**
 * @param {number} count
 * @param {string} stdout
 */
function outputsOf(count, stdout) {
  const parts = stdout.split(new RegExp(`^${MARK} \\d+\\n`, 'm')).slice(1);
  return Array.from({ length: count }, (_, i) => cut(parts[i] ?? ''));
}

/** @param {string} output */
function cut(output) {
  const lines = output.trimEnd().split('\n').slice(0, OUTPUT_LINES_MAX);
  return lines
    .map((line) => `${line.slice(0, LINE_MAX).trimEnd()}\n`)
    .join('')
    .replace(/^\n$/, '');
}
