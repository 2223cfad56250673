// @ts-check
/**
 * What `rocev2 wire` lets through: `rocev2 bw` between two processes, with the wire as a third one, on two network interfaces, two links of datagrams and as
 * a relay; the interfaces also under a live audit. The programs share the processors of this machine.
 *
 *   node bench/wire.js [--seconds 4] [--op write] [--json]
 *
 * The interfaces are links of network namespaces that the bench makes (`unshare -rn`); without that right their rows are left out.
 */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const CLI = fileURLToPath(new URL('../packages/cli/bin/rocev2.js', import.meta.url));
const NAMESPACES = fileURLToPath(new URL('../test/e2e/fixtures/three-namespaces.sh', import.meta.url));
const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** A path MTU of 4096. */
const LINK_MTU = 4300;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' },
    op: { type: 'string', default: 'write' },
    json: { type: 'boolean', default: false },
  },
});
const { seconds, op } = values;

/** @typedef {{ place: string, gbps: number, frames: number, retransmitted: number }} Row */

/** @param {readonly string[]} args */
function start(...args) {
  const child = spawn(process.execPath, [CLI, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const program = { child, stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => {
    program.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    program.stderr += text;
  });
  return program;
}

/** @param {ReturnType<typeof start>} program @param {RegExp} pattern */
async function writes(program, pattern) {
  for (;;) {
    const match = pattern.exec(program.stderr);
    if (match !== null) return match;
    if (program.child.exitCode !== null) throw new Error(`${program.stdout}${program.stderr}`);
    await Promise.race([once(program.child.stderr, 'data'), once(program.child, 'close')]);
  }
}

/** @param {ReturnType<typeof start>} program */
async function ended(program) {
  if (program.child.exitCode === null) await once(program.child, 'close');
  if (program.child.exitCode !== 0) throw new Error(`${program.stdout}${program.stderr}`);
  return JSON.parse(program.stdout);
}

/** @param {string} place @param {any} client @param {any} wire @returns {Row} */
function row(place, client, wire) {
  return {
    place,
    gbps: client.goodputBps / 1e9,
    frames: wire.sides[0].counters.rx_packets + wire.sides[1].counters.rx_packets,
    retransmitted: client.counters?.tx_retransmitted ?? 0,
  };
}

/** @param {string} place @param {readonly string[]} options */
function overInterfaces(place, ...options) {
  const bw = `node packages/cli/bin/rocev2.js bw ${op} --io mmsg`;
  const client = `${bw} --bind 10.9.0.1 10.9.0.2 -D ${seconds}s --json`;
  const { status, stdout, stderr } = spawnSync(
    'unshare',
    ['-rn', 'bash', NAMESPACES, `${LINK_MTU}`, `${bw} --bind 10.9.0.2`, 'waiting for', client, ...options],
    { encoding: 'utf8', cwd: ROOT },
  );
  if (status !== 0) throw new Error(stderr);
  const said = stderr.split('\n').find((line) => line.startsWith('{'));
  return row(place, JSON.parse(said ?? ''), JSON.parse(stdout));
}

async function overDatagrams() {
  const wire = start('wire', '127.0.0.1:0', '127.0.0.1:0', '--json');
  const [, a, b] = await writes(wire, /side a on (\S+:\d+), side b on (\S+:\d+)\n/);
  const server = start('bw', op, '--frame', `${b},100Gbps`, '--bind', '198.18.0.2', '-p', '19571');
  await writes(server, /waiting for/);
  const client = start(
    ...['bw', op, '127.0.0.1', '--frame', `${a},100Gbps`, '--bind', '198.18.0.1', '-p', '19571'],
    ...['-D', `${seconds}s`, '--json'],
  );
  const figures = await ended(client);
  if (server.child.exitCode === null) await once(server.child, 'close');
  wire.child.kill('SIGINT');
  return row('two links of datagrams', figures, await ended(wire));
}

async function measure() {
  const hasNamespaces = spawnSync('unshare', ['-rn', 'true']).status === 0;
  const rows = [await overDatagrams()];
  if (hasNamespaces) {
    rows.push(overInterfaces('two network interfaces'));
    rows.push(overInterfaces('two network interfaces, --audit', '--audit'));
  }
  return rows;
}

const rows = await measure();
if (values.json) process.stdout.write(`${JSON.stringify(rows)}\n`);
else {
  process.stdout.write('wire                              Gb/s   frames  retransmitted\n');
  for (const { place, gbps, frames, retransmitted } of rows) {
    process.stdout.write(
      `${place.padEnd(32)}${gbps.toFixed(2).padStart(6)}${String(frames).padStart(9)}${String(retransmitted).padStart(15)}\n`,
    );
  }
}
