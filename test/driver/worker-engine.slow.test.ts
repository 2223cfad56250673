/** The NIC in a thread of its own. `test/soak/engines.long.ts` has more of the contracts on it. */

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import type { DeviceOptions, RdmaDevice } from '../../src/index.js';
import { connectionContract } from '../contracts/connection-contract.js';
import { registeredMemoryContract } from '../contracts/registered-memory-contract.js';
import { waitingContract } from '../contracts/waiting-contract.js';
import { builtApi, isBuilt } from '../support/built-api.js';

const SERVER = '127.53.1.1';
const CLIENT = '127.53.1.2';

if (isBuilt) {
  const api = await builtApi();
  const addresses = { server: '127.53.2.1', client: '127.53.2.2' };
  connectionContract('worker engine', { api, options: { engine: 'worker' }, ...addresses });
  waitingContract('signal and timeoutMs, worker engine', { api, options: { engine: 'worker' }, ...addresses });
  registeredMemoryContract('registered memory, worker engine', { api, options: { engine: 'worker' }, ...addresses });
}

const open: Array<{ close(): Promise<void> }> = [];

afterEach(async () => {
  for (const thing of open.splice(0).reverse()) await thing.close();
});

async function openDevice(options: DeviceOptions): Promise<RdmaDevice> {
  const { openDevice } = await builtApi();
  const device = await openDevice({ engine: 'worker', ...options });
  open.push(device);
  return device;
}

describe.runIf(isBuilt)('a worker engine', () => {
  it('says where it runs', async () => {
    const device = await openDevice({ address: SERVER });
    expect(device.portDescription).toMatch(/NIC in a worker/);
    expect(device.attributes.udpPort).toBe(4791);
    expect(device.address.text).toBe(SERVER);
    expect(device.poll()).toBe(false); // Its thread polls it.
  });

  it('registers shared memory only, and says what to do', async () => {
    const { Access } = await builtApi();
    const device = await openDevice({ address: SERVER });
    const pd = await device.createPd();
    const own = new Uint8Array(4096);
    expect(device.reaches(own)).toBe(false);
    await expect(pd.regMr(own, Access.LOCAL_WRITE)).rejects.toMatchObject({
      code: 'ERR_ROCE_UNSUPPORTED',
      message: expect.stringMatching(/runs in a worker.*device\.allocate/),
    });
    const shared = device.allocate(4096);
    expect(device.reaches(shared)).toBe(true);
    const mr = await pd.regMr(shared, Access.LOCAL_WRITE);
    expect(mr.bytes.buffer).toBe(shared.buffer);
    const other = await pd.regMr(new Uint8Array(new SharedArrayBuffer(64)), Access.LOCAL_WRITE);
    expect(other.length).toBe(64);
  });

  it('passes on what opening the port says', async () => {
    await openDevice({ address: SERVER });
    await expect(openDevice({ address: SERVER })).rejects.toMatchObject({
      code: 'ERR_ROCE_IO',
      message: expect.stringMatching(/cannot bind UDP 127\.53\.1\.1:4791: EADDRINUSE/),
    });
    await expect(openDevice({ address: 'nonsense' })).rejects.toMatchObject({ code: 'ERR_ROCE_MALFORMED' });
  });

  it('refuses commands as an inline one does', async () => {
    const device = await openDevice({ address: SERVER });
    const pd = await device.createPd();
    const cq = await device.createCq(16);
    const qp = await pd.createQp({ sendCq: cq });
    await expect(qp.modify({ state: 'RTS' })).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_STATE' });
    expect(() => qp.postSend({ opcode: 'SEND', sges: [] })).toThrow(/sends in RTS only/);
  });

  it.each(['mmsg', 'dgram'] as const)('closes, and its address can be bound again (%s)', async (io) => {
    for (let i = 0; i < 3; i++) {
      const device = await openDevice({ address: SERVER, io, native: io === 'dgram' ? 'off' : 'auto' });
      await device.createPd();
      await device.close();
    }
  });
});

/** Lets a client write and read the memory of a server whose application is in a busy loop for a second. */
async function blockedServer(options: Partial<DeviceOptions>): Promise<{ rounds: number; p99Ms: number }> {
  const { listen, openDevice } = await builtApi();
  const server = await openDevice({ address: SERVER, ...options });
  open.push(server);
  const memory = server.allocate(4096);
  const listener = await listen(server, { port: 0, region: memory });
  open.push(listener);
  const accepting = listener.accept();

  // In a thread of its own, because this one will be blocked.
  const client = new Worker(new URL('../e2e/fixtures/one-sided-client.mjs', import.meta.url), {
    workerData: { address: CLIENT, host: SERVER, port: listener.port },
    execArgv: [],
  });
  open.push(await accepting);
  await once(client, 'message');

  const progress = new Uint32Array(memory.buffer, memory.byteOffset, 1);
  const before = progress[0];
  const until = performance.now() + 1000;
  while (performance.now() < until);
  const rounds = progress[0] - before;

  client.postMessage('stop');
  const [{ p99Ms }] = await once(client, 'message');
  await once(client, 'exit');
  return { rounds, p99Ms };
}

describe.runIf(isBuilt)('one-sided operations on a server whose application is blocked', () => {
  it.each([true, false])('are served by its worker (spin %s)', async (spin) => {
    const { rounds, p99Ms } = await blockedServer({ engine: 'worker', spin });
    expect(rounds).toBeGreaterThan(10);
    expect(p99Ms).toBeLessThan(500);
  });

  it('wait with an inline engine', async () => {
    const { rounds } = await blockedServer({ engine: 'inline' });
    expect(rounds).toBeLessThan(3);
  });
});
