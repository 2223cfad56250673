/**
 * One well-behaved NBD client of a gateway, alone and beside 63 that ask for 64 MiB each and fetch nothing: latency of its reads of 512 bytes, and memory of
 * the gateway before, meanwhile, and when they have gone. Needs nbdsh (Debian: python3-libnbd, libnbd-bin).
 *
 *     npm run bench:disk-fairness [-- --reads 2000]
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { NbdDevice } from '../build/src/storage-rpc/nbd/nbd-device.js';
import { Chains } from './fio/chains.js';

const { values } = parseArgs({ options: { reads: { type: 'string', default: '2000' } } });
const reads = Number(values.reads);
const HOSTILE = `
import sys, nbd
held = []
for i in range(63):
    h = nbd.NBD()
    h.connect_uri(sys.argv[1])
    buffers = [nbd.Buffer(32 << 20) for _ in range(2)]
    for b in buffers: h.aio_pread(b, 0)
    held.append((h, buffers))
print("asked", flush=True)
sys.stdin.read()
`;

const chains = new Chains();

/** Resident memory of a process, MiB. @param {import('node:child_process').ChildProcess} child */
function residentMiB({ pid }) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** @param {NbdDevice} device */
async function percentilesUs(device) {
  const into = new Uint8Array(512);
  const us = [];
  for (let n = 0; n < reads; n++) {
    const startMs = performance.now();
    await device.read(512 * (n % 1000), 512, into);
    us.push((performance.now() - startMs) * 1e3);
  }
  us.sort((a, b) => a - b);
  return { p50: us[Math.floor(reads / 2)], p99: us[Math.floor(reads * 0.99)] };
}

try {
  const socket = chains.socket('gateway');
  const gateway = await chains.rocev2(
    'disk',
    'nbd',
    '--listen',
    `unix:${socket}`,
    '--backend',
    'memory',
    '--size',
    '1GiB',
  );
  const uri = `nbd+unix:///disk0?socket=${socket}`;
  const device = await NbdDevice.open(uri);
  // Data that is there, so that reads of it take memory.
  for (let at = 0; at < 64; at++) await device.write(at << 20, new Uint8Array(1 << 20).fill(at));
  await percentilesUs(device);
  console.log(
    `node ${process.version}, ${cpus().length} x ${cpus()[0].model}, load ${loadavg()[0].toFixed(1)}; ${reads} reads of 512 bytes`,
  );
  const before = { ...(await percentilesUs(device)), resident: residentMiB(gateway) };
  const hostile = spawn('/usr/bin/python3', ['-c', HOSTILE, `nbd+unix:///disk0?socket=${socket}`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(hostile.stdout, 'data');
  const beside = { ...(await percentilesUs(device)), resident: residentMiB(gateway) };
  hostile.stdin.end();
  await once(hostile, 'exit');
  await percentilesUs(device);
  const after = { ...(await percentilesUs(device)), resident: residentMiB(gateway) };
  for (const [name, { p50, p99, resident }] of Object.entries({
    alone: before,
    'beside 63': beside,
    afterwards: after,
  })) {
    console.log(
      `${name.padEnd(12)} p50 ${p50.toFixed(0).padStart(6)} us   p99 ${p99.toFixed(0).padStart(7)} us   ${resident.toFixed(0).padStart(5)} MiB resident`,
    );
  }
  console.log(`p99 beside to alone: ${(beside.p99 / before.p99).toFixed(2)}`);
  await device.close();
} finally {
  await chains.close();
}
