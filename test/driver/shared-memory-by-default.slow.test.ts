/** `io: 'auto'` on real sockets: who shares memory, and who speaks UDP as with `io: 'mmsg'`. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { batchedUdpAvailable } from '../../src/dgram-ext/index.js';
import type { DeviceOptions } from '../../src/index.js';
import { memoryDomain } from '../../src/port/shm/memory-domain.js';
import { builtApi, isBuilt } from '../support/built-api.js';
import { mappedRings } from '../support/mapped-rings.js';

/** The thread of a NIC runs what was built. */
const { connect, listen, openDevice } = isBuilt ? await builtApi() : await import('../../src/index.js');

const [SERVER, CLIENT] = ['127.53.9.1', '127.53.9.2'];
const DATA = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * i) >>> 7));

const folder = mkdtempSync(join(tmpdir(), 'rocev2-auto-'));
afterAll(() => rmSync(folder, { recursive: true }));

const closing: Array<{ close(): Promise<void> }> = [];
afterEach(async () => {
  for (const one of closing.splice(0).reverse()) await one.close();
});

/** Connects two devices, and moves data both ways. Returns what both ends say of shared memory. */
async function talk(server: Partial<DeviceOptions>, client: Partial<DeviceOptions> = server): Promise<boolean[]> {
  const [a, b] = [
    await openDevice({ address: SERVER, udpPort: 0, ...server }),
    await openDevice({ address: CLIENT, udpPort: 0, ...client }),
  ];
  closing.push(a, b);
  const listener = await listen(a, { port: 0, region: DATA.length });
  closing.push(listener);
  const [served, dialled] = await Promise.all([listener.accept(), connect(b, { host: SERVER, port: listener.port })]);
  await dialled.write(DATA);
  expect(await dialled.read(DATA.length)).toEqual(DATA);
  await served.send(DATA.subarray(0, 5000));
  expect((await dialled.receive()).data).toEqual(DATA.subarray(0, 5000));
  return [served.agreement.sharesMemory, dialled.agreement.sharesMemory];
}

const YES = [true, true];
const NO = [false, false];
const auto = { io: 'auto' } as const;
const psk = [{ identity: 'us', key: new Uint8Array(32).fill(7) }];

describe.skipIf(batchedUdpAvailable() !== undefined)("io: 'auto' (needs koffi on Linux)", () => {
  it('shares memory with a peer of the same user on this host', async () => expect(await talk(auto)).toEqual(YES));

  it.skipIf(!isBuilt)('does so from workers, whose default it is', async () => {
    expect(await talk({ engine: 'worker' }, auto)).toEqual(YES);
  });

  it('shares with a peer that says shm', async () => expect(await talk(auto, { io: 'shm' })).toEqual(YES));

  it.each<[string, Partial<DeviceOptions>]>([
    ['one end says mmsg', { io: 'mmsg' }],
    ['one end says dgram', { io: 'dgram' }],
    ['one end has no koffi', { native: 'off', io: 'dgram' }],
    ['one end has fault rules', { ...auto, loss: 'every=1000' }],
    ['one end writes a trace', { ...auto, trace: join(folder, 'trace.jsonl') }],
    ['one end captures', { ...auto, pcap: join(folder, 'packets.pcapng') }],
  ])('speaks UDP where %s, whichever', async (_, other) => {
    expect(await talk(auto, other)).toEqual(NO);
    await closing.pop()?.close();
    await closing.pop()?.close();
    await closing.pop()?.close();
    expect(await talk(other, auto)).toEqual(NO);
  });

  it('speaks UDP where packets are protected', async () => {
    expect(await talk({ ...auto, secure: { psk } }, { ...auto, secure: { psk: psk[0] } })).toEqual(NO);
  });

  it('costs no memory until a peer shares, and says that one may', async () => {
    const before = mappedRings();
    const device = await openDevice({ address: SERVER, udpPort: 0, ...auto });
    const plain = await openDevice({ address: SERVER, udpPort: 0, io: 'mmsg' });
    closing.push(device, plain);
    expect(mappedRings()).toBe(before);
    const [socket, crc] = plain.portDescription.split(', CRC');
    expect(device.portDescription).toBe(`${socket}, shared memory where both ends can, mapped regions, CRC${crc}`);
    expect(device.attributes.receiveBudgetPackets).toBe(plain.attributes.receiveBudgetPackets);
  });
});

describe.skipIf(process.platform !== 'linux')('the memory domain of a process', () => {
  it('is the same each time, and shows nothing of what it is made from', () => {
    expect(memoryDomain()).toMatch(/^[0-9a-f]{32}$/);
    expect(memoryDomain()).toBe(memoryDomain());
  });
});
