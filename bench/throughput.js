// @ts-check
/**
 * Throughput of `rocev2 bw` beside what Node can do without RDMA, interleaved in one run on this machine: the only comparison that means
 * something on a shared one.
 *
 *   raw dgram    one-way blast of 4112-byte datagrams through node:dgram, connected socket, 64 a turn; bytes received count
 *   net framed   TCP through node:net, 4 MiB messages behind a 4-byte length, copied into one buffer
 *   rocev2 ...   two processes on node:dgram, path MTU 4096, 4 MiB messages, ICRC on, data verified
 *
 *   node bench/throughput.js [--reps 5] [--seconds 1] [--json]
 */

import { spawn } from 'node:child_process';
import dgram from 'node:dgram';
import { once } from 'node:events';
import net from 'node:net';
import os from 'node:os';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const SELF = fileURLToPath(import.meta.url);
const CLI = fileURLToPath(new URL('../packages/cli/bin/rocev2.js', import.meta.url));
const DATAGRAM_BYTES = 4112;
const MESSAGE_BYTES = 4 * 1024 * 1024;
const SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;
const SENDS_PER_TURN = 64;

// ---- roles of child processes: each prints one line {ready: port} or {bytes, seconds}

const say = (/** @type {object} */ message) => process.stdout.write(`${JSON.stringify(message)}\n`);

function dgramReceiver() {
  const socket = dgram.createSocket({ type: 'udp4', recvBufferSize: SOCKET_BUFFER_BYTES });
  let bytes = 0;
  let first = 0;
  let last = 0;
  socket.on('message', (message) => {
    last = performance.now();
    if (first === 0) first = last;
    bytes += message.length;
  });
  socket.bind(0, '127.0.0.1', () => say({ ready: socket.address().port }));
  process.stdin.once('data', () => {
    say({ bytes, seconds: (last - first) / 1000 });
    process.exit();
  });
}

function dgramSender(/** @type {number} */ port, /** @type {number} */ seconds) {
  const socket = dgram.createSocket({ type: 'udp4', sendBufferSize: SOCKET_BUFFER_BYTES });
  const slots = Array.from({ length: SENDS_PER_TURN }, (_, i) => Buffer.alloc(DATAGRAM_BYTES, i));
  socket.connect(port, '127.0.0.1', () => {
    const end = performance.now() + seconds * 1000;
    const turn = () => {
      for (const slot of slots) socket.send(slot);
      if (performance.now() < end) setImmediate(turn);
      else socket.close(() => say({ sent: true }));
    };
    turn();
  });
}

function netReceiver() {
  const target = Buffer.alloc(MESSAGE_BYTES);
  const server = net.createServer((socket) => {
    const start = performance.now();
    let bytes = 0;
    let header = Buffer.alloc(0);
    let left = 0;
    let filled = 0;
    socket.on('data', (chunk) => {
      let o = 0;
      while (o < chunk.length) {
        if (left === 0) {
          header = Buffer.concat([header, chunk.subarray(o, o + 4 - header.length)]);
          o += Math.min(4, chunk.length - o);
          if (header.length < 4) break;
          left = header.readUInt32BE();
          header = Buffer.alloc(0);
          filled = 0;
          continue;
        }
        const part = Math.min(left, chunk.length - o);
        chunk.copy(target, filled, o, o + part);
        filled += part;
        left -= part;
        bytes += part;
        o += part;
      }
    });
    socket.on('end', () => {
      say({ bytes, seconds: (performance.now() - start) / 1000 });
      server.close();
      socket.end();
    });
  });
  server.listen(0, '127.0.0.1', () => {
    const address = /** @type {net.AddressInfo} */ (server.address());
    say({ ready: address.port });
  });
}

function netSender(/** @type {number} */ port, /** @type {number} */ seconds) {
  const socket = net.connect(port, '127.0.0.1', async () => {
    const header = Buffer.alloc(4);
    header.writeUInt32BE(MESSAGE_BYTES);
    const message = Buffer.alloc(MESSAGE_BYTES, 7);
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) {
      socket.write(header);
      if (!socket.write(message)) await once(socket, 'drain');
    }
    socket.end();
  });
}

// ---- the parent

/** A child that speaks JSON lines. */
function child(/** @type {string[]} */ args) {
  const process_ = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let text = '';
  let errors = '';
  /** @type {Array<(line: any) => void>} */
  const waiting = [];
  /** @type {any[]} */
  const lines = [];
  process_.stderr.on('data', (data) => {
    errors += data;
  });
  process_.stdout.on('data', (data) => {
    text += data;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      const line = JSON.parse(text.slice(0, end));
      text = text.slice(end + 1);
      const wake = waiting.shift();
      if (wake === undefined) lines.push(line);
      else wake(line);
    }
  });
  const exited = once(process_, 'exit');
  return {
    line: () => (lines.length > 0 ? Promise.resolve(lines.shift()) : new Promise((resolve) => waiting.push(resolve))),
    exited,
    write: (/** @type {string} */ data) => process_.stdin.write(data),
    stderr: () => errors,
    kill: () => process_.kill(),
    process: process_,
  };
}

async function raw(/** @type {number} */ seconds) {
  const receiver = child([SELF, '--role', 'dgram-receiver']);
  const { ready } = await receiver.line();
  const sender = child([SELF, '--role', 'dgram-sender', '--port', String(ready), '--seconds', String(seconds)]);
  await sender.exited;
  receiver.write('stop\n');
  const { bytes, seconds: took } = await receiver.line();
  await receiver.exited;
  return bytes / took / 1e6;
}

async function framed(/** @type {number} */ seconds) {
  const receiver = child([SELF, '--role', 'net-receiver']);
  const { ready } = await receiver.line();
  const sender = child([SELF, '--role', 'net-sender', '--port', String(ready), '--seconds', String(seconds)]);
  const { bytes, seconds: took } = await receiver.line();
  await Promise.all([receiver.exited, sender.exited]);
  return bytes / took / 1e6;
}

let tcpPort = 28515;

async function rocev2(/** @type {string} */ op, /** @type {number} */ seconds, /** @type {string[]} */ extra = []) {
  const port = String(tcpPort++);
  const server = child([CLI, 'bw', op, '-p', port, '--io', 'dgram', '--json', ...extra]);
  await once(server.process.stderr, 'data'); // "waiting for ..."
  const args = [
    CLI,
    'bw',
    op,
    '127.0.0.1',
    '-p',
    port,
    '-s',
    '4MiB',
    '-t',
    '16',
    '-D',
    `${seconds}s`,
    '--io',
    'dgram',
    '--json',
    ...extra,
  ];
  const client = child(args);
  const [code] = await client.exited;
  if (code !== 0) throw new Error(`rocev2 ${args.slice(1).join(' ')}: ${client.stderr()}`);
  const result = await client.line();
  await server.exited;
  if (!result.verified) throw new Error(`rocev2 bw ${op}: data not verified`);
  return result.goodputBps / 8e6;
}

const median = (/** @type {number[]} */ values) => [...values].sort((a, b) => a - b)[values.length >> 1];

async function main(/** @type {number} */ reps, /** @type {number} */ seconds, /** @type {boolean} */ json) {
  const competitors = /** @type {const} */ ([
    ['raw dgram', () => raw(seconds)],
    ['rocev2 write', () => rocev2('write', seconds)],
    ['rocev2 read', () => rocev2('read', seconds)],
    ['rocev2 send', () => rocev2('send', seconds)],
    ['net framed', () => framed(seconds)],
  ]);
  const rows = competitors.map(([name]) => ({ name, mbPerSecond: /** @type {number[]} */ ([]) }));
  for (let rep = 0; rep < reps; rep++) {
    for (const [i, [name, run]] of competitors.entries()) {
      const value = await run();
      rows[i].mbPerSecond.push(value);
      if (!json) process.stderr.write(`rep ${rep + 1}/${reps} ${name}: ${value.toFixed(0)} MB/s\n`);
    }
  }
  const table = rows.map(({ name, mbPerSecond }) => ({
    name,
    median: median(mbPerSecond),
    min: Math.min(...mbPerSecond),
    max: Math.max(...mbPerSecond),
    // The ratio within each repetition: both had the machine in the same minute.
    ratioToRaw: median(mbPerSecond.map((value, rep) => value / rows[0].mbPerSecond[rep])),
  }));
  if (json) {
    say({
      node: process.version,
      cpu: os.cpus()[0].model,
      cores: os.cpus().length,
      load: os.loadavg(),
      reps,
      seconds,
      table,
    });
    return;
  }
  console.log(
    `node ${process.version}, ${os.cpus().length} x ${os.cpus()[0].model.trim()}, load ${os
      .loadavg()
      .map((x) => x.toFixed(1))
      .join(' ')}`,
  );
  console.log(`${reps} interleaved repetitions of ${seconds} s; MB/s = 10^6 bytes per second\n`);
  console.log('                  median     min     max   x raw dgram');
  for (const row of table) {
    console.log(
      `${row.name.padEnd(14)}${row.median.toFixed(0).padStart(10)}${row.min.toFixed(0).padStart(8)}${row.max.toFixed(0).padStart(8)}${row.ratioToRaw.toFixed(2).padStart(14)}`,
    );
  }
}

const { values } = parseArgs({
  options: {
    role: { type: 'string' },
    port: { type: 'string' },
    seconds: { type: 'string', default: '1' },
    reps: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
if (values.role === 'dgram-receiver') dgramReceiver();
else if (values.role === 'dgram-sender') dgramSender(Number(values.port), seconds);
else if (values.role === 'net-receiver') netReceiver();
else if (values.role === 'net-sender') netSender(Number(values.port), seconds);
else await main(Number(values.reps), seconds, values.json);
