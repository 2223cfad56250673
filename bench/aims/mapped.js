// @ts-check
/**
 * What copies to mapped regions cost between two processes: WRITEs and READs of 4 MiB over working sets of several sizes, memcpy of C into the same memory, a GET of
 * `kv` and an uncontended lock of `primitives`. `node mapped.js` prints JSON (`small`: of 4 MiB only); `node mapped.js owner BYTES` is the
 * other process.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { openKv, serveKv } from '../../build/packages/kv/src/index.js';
import { openPrimitives, servePrimitives } from '../../build/packages/primitives/src/index.js';
import { libC, nativeFunction } from '../../build/src/dgram-ext/libc.js';
import { Access, connect, listen, openDevice } from '../../build/src/index.js';
import { median } from '../peers/percentiles.js';
import { KV_GET, LOCK, MEMCPY, mappedName } from './list.js';

const MIB = 1024 * 1024;
const BLOCK = 4 * MIB;
const [OWNER, REQUESTER] = ['127.54.5.1', '127.54.5.2'];
const WORKING_SETS = process.argv[2] === 'small' ? [4 * MIB] : [4 * MIB, 256 * MIB, 4096 * MIB];
/** Bytes of one timed pass; the median of the passes counts. */
const PASS_BYTES = 1024 * MIB;
const PASSES = 3;
const CALLS = 10_000;

async function own(/** @type {number} */ bytes) {
  const device = await openDevice({ address: OWNER, udpPort: 0, io: 'shm' });
  const region = device.allocate(bytes).fill(1);
  const listener = await listen(device, { host: OWNER, port: 0, region });
  const store = await serveKv({ device, host: OWNER, port: 0 });
  await store.set('key', Buffer.alloc(1024, 7));
  const primitives = await servePrimitives({ device, host: OWNER, port: 0 });
  const fd = device.grants?.mapping.descriptorOf(region.buffer);
  const ports = { port: listener.port, kvPort: store.port, lockPort: primitives.port };
  process.stdout.write(`${JSON.stringify({ ...ports, fd, pid: process.pid })}\n`);
  process.stdin.once('end', () => process.exit()).resume();
}

/** Runs `work` with the device of a requester and where the memory of another process is. */
async function withOwner(
  /** @type {number} */ bytes,
  /** @type {(device: import('../../build/src/index.js').RdmaDevice, where: any) => Promise<void>} */ work,
) {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), 'owner', String(bytes)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const device = await openDevice({ address: REQUESTER, udpPort: 0, io: 'shm' });
  try {
    const [line] = await once(child.stdout, 'data');
    await work(device, JSON.parse(line));
  } finally {
    await device.close();
    child.stdin.end();
  }
}

/** Rates of passes over `bytes`, 4 MiB at a time. @param {number} bytes @param {(offset: number) => unknown} copy @returns {Promise<number>} MB/s */
async function rateOver(bytes, copy) {
  const rates = [];
  const blocks = Math.max(PASS_BYTES, bytes) / BLOCK;
  for (let pass = -1; pass < PASSES; pass++) {
    const startMs = performance.now();
    for (let n = 0; n < blocks; n++) await copy((n * BLOCK) % bytes);
    if (pass >= 0) rates.push((blocks * BLOCK) / 1e3 / (performance.now() - startMs));
  }
  return median(rates);
}

/** @param {() => Promise<unknown>} call @returns {Promise<number>} us */
async function timeOf(call) {
  const times = [];
  for (let pass = -1; pass < PASSES; pass++) {
    const startMs = performance.now();
    for (let n = 0; n < CALLS; n++) await call();
    if (pass >= 0) times.push(((performance.now() - startMs) * 1e3) / CALLS);
  }
  return median(times);
}

function sizeText(/** @type {number} */ bytes) {
  return bytes >= 1024 * MIB ? `${bytes / MIB / 1024} GiB` : `${bytes / MIB} MiB`;
}

async function measure() {
  /** @type {Record<string, number>} */
  const values = {};
  for (const bytes of WORKING_SETS) {
    await withOwner(bytes, async (device, { port, kvPort, lockPort, pid, fd }) => {
      const connection = await connect(device, { host: OWNER, port });
      if (!connection.agreement.mapsRegion) throw new Error('the region is not mapped');
      const local = await connection.register(BLOCK, Access.LOCAL_WRITE);
      local.bytes.fill(2);
      const { addr: remote, rkey } = /** @type {NonNullable<typeof connection.remote>} */ (connection.remote);
      const post = (/** @type {'RDMA_WRITE' | 'RDMA_READ'} */ opcode) => (/** @type {number} */ offset) =>
        connection.post({ opcode, sges: [local.sge()], remoteAddr: remote + BigInt(offset), rkey });
      const name = (/** @type {string} */ what) => mappedName(what, sizeText(bytes));
      values[name('WRITE')] = await rateOver(bytes, post('RDMA_WRITE'));
      values[name('READ')] = await rateOver(bytes, post('RDMA_READ'));
      const lib = libC();
      const part = device.grants?.mapping.open({
        ...{ pid, fd, kind: 'region', access: 'write' },
        ...{ segmentBytes: bytes, start: 0, bytes },
      });
      if (typeof lib === 'string' || part === undefined) throw new Error('the region cannot be mapped twice');
      const memcpy = nativeFunction('libc.so.6', 'uintptr_t memcpy(uintptr_t, uintptr_t, size_t)');
      const [from, to] = [lib.addressOf(local.bytes), lib.addressOf(part.bytes)];
      values[name(MEMCPY)] = await rateOver(bytes, (offset) => memcpy(to + offset, from, BLOCK));
      part.close();
      await connection.close();
      if (bytes !== WORKING_SETS[0]) return;
      const kv = await openKv({ device, host: OWNER, port: kvPort });
      values[KV_GET] = await timeOf(() => kv.get('key'));
      await kv.close();
      const client = await openPrimitives({ device, host: OWNER, port: lockPort });
      const lock = await client.lock('aim');
      values[LOCK] = await timeOf(() => lock.run(async () => {}));
      await client.close();
    });
  }
  process.stdout.write(`${JSON.stringify(values)}\n`);
}

if (process.argv[2] === 'owner') await own(Number(process.argv[3]));
else await measure();
