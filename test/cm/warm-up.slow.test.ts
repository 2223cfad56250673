/** `warmUp` over real sockets: what it leaves of the device, and who cannot. That it pays is measured by `npm run bench:first-touch -- --warm-up 1000`. */

import { afterEach, describe, expect, it } from 'vitest';
import { batchedUdpAvailable } from '../../src/dgram-ext/index.js';
import type { DeviceOptions, RdmaDevice } from '../../src/index.js';
import { builtApi, isBuilt } from '../support/built-api.js';
import { mappedRings } from '../support/mapped-rings.js';

/** The thread of a NIC runs what was built. */
const { connect, listen, openDevice, warmUp } = isBuilt ? await builtApi() : await import('../../src/index.js');

const [SERVER, CLIENT] = ['127.53.9.5', '127.53.9.6'];
const DATA = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * i) >>> 7));
const psk = [{ identity: 'us', key: new Uint8Array(32).fill(7) }];

const closing: Array<{ close(): Promise<void> }> = [];
afterEach(async () => {
  for (const one of closing.splice(0).reverse()) await one.close();
});

async function open(options: Partial<DeviceOptions> = {}): Promise<RdmaDevice> {
  const device = await openDevice({ address: SERVER, udpPort: 0, ...options });
  closing.push(device);
  return device;
}

/** A peer writes to the device, and reads what it has written. Returns whether they share memory. */
async function serves(device: RdmaDevice, options: Partial<DeviceOptions>): Promise<boolean> {
  const peer = await open({ address: CLIENT, ...options });
  const listener = await listen(device, { port: 0, region: DATA.length });
  closing.push(listener);
  const [, dialled] = await Promise.all([listener.accept(), connect(peer, { host: SERVER, port: listener.port })]);
  await dialled.write(DATA);
  expect(await dialled.read(DATA.length)).toEqual(DATA);
  return dialled.agreement.sharesMemory;
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'no error',
    ({ code }) => code,
  );

describe('warmUp', () => {
  const ways: Array<[string, Partial<DeviceOptions>]> = [['on an event loop, by node:dgram', { io: 'dgram' }]];
  if (batchedUdpAvailable() === undefined) {
    ways.push(['on an event loop, by mmsg', { io: 'mmsg' }], ['on an event loop, by auto', { io: 'auto' }]);
    ways.push(['on an event loop, by shm', { io: 'shm' }]);
  }
  if (isBuilt) ways.push(['in a worker', { engine: 'worker' }]);

  it.each(ways)('moves data from the device to itself %s, and lets it serve peers as before', async (_, options) => {
    const device = await open(options);
    await warmUp(device, { durationMs: 60 });
    const { tx_data_packets: sent, rx_accepted: received, tx_retransmitted: again } = device.counters();
    expect(sent).toBeGreaterThanOrEqual(256); // One message of 1 MiB.
    expect(received).toBeGreaterThan(sent - again);
    expect(await serves(device, options)).toBe(
      options.io === 'auto' || options.io === 'shm' || options.engine === 'worker',
    );
  });

  it.skipIf(!ways.some(([, { io }]) => io === 'auto'))('gives back the ring by which it reached itself', async () => {
    const before = mappedRings();
    const device = await open({ io: 'auto' });
    const warming = warmUp(device, { durationMs: 200 });
    await expect.poll(mappedRings, { interval: 5 }).toBeGreaterThan(before);
    await warming;
    await expect.poll(mappedRings).toBe(before);
  });

  it('is refused where packets do not come back', async () => {
    const device = await open({ loss: 'every=1' });
    await expect(warmUp(device)).rejects.toThrow(/cannot warm itself up.*do not come back/s);
    expect(await codeOf(warmUp(device))).toBe('ERR_ROCE_UNSUPPORTED');
  });

  it('is refused where packets are protected', async () => {
    const device = await open({ secure: { psk } });
    expect(await codeOf(warmUp(device))).toBe('ERR_ROCE_UNSUPPORTED');
    expect(device.counters().tx_packets).toBe(0);
  });

  it('ends with a device that is closed meanwhile', async () => {
    const device = await open();
    const warming = codeOf(warmUp(device, { durationMs: 60_000 }));
    await expect.poll(() => device.counters().tx_packets).toBeGreaterThan(0);
    await device.close();
    expect(await warming).toBe('ERR_ROCE_CLOSED');
  });

  it.each([
    [{ durationMs: 0 }, 'ERR_ROCE_OUT_OF_RANGE'],
    [{ durationMs: 60_001 }, 'ERR_ROCE_OUT_OF_RANGE'],
    [{ durationMs: '1s' as unknown as number }, 'ERR_ROCE_OUT_OF_RANGE'],
    [{ seconds: 1 } as object, 'ERR_ROCE_UNKNOWN_NAME'],
  ])('refuses %j before anything is sent', async (options, code) => {
    const device = await open();
    expect(await codeOf(warmUp(device, options))).toBe(code);
    expect(device.counters().tx_packets).toBe(0);
  });
});
