/** sU-RDMA as a stream of bytes: modes, flow control, ends, failures; in virtual time. */

import { expect, test } from 'vitest';
import type { SuChunk } from '../../../src/storage-rpc/su/su-receiver.js';
import { pattern } from '../sk/rig.js';
import { TwoEnds } from './two-ends.js';

const KIB = 1024;
const SECOND = 1e9;

test.each([
  ['small', 0],
  ['small', 1],
  ['small', 4056],
  ['medium', 4057],
  ['medium', 64 * KIB],
  ['large', 64 * KIB + 1],
  ['large', 1000_000],
] as const)('%s: %i bytes arrive as they were sent, in both directions', async (mode, bytes) => {
  const ends = await TwoEnds.connected();
  const there = pattern(bytes, 1);
  const back = pattern(bytes, 2);
  await ends.until(Promise.all([ends.client.connection.write(there), ends.server.connection.write(back)]));
  await ends.pass(1e6);
  expect(Buffer.concat(ends.server.received).equals(there)).toBe(true);
  expect(Buffer.concat(ends.client.received).equals(back)).toBe(true);
  const { small, medium, large } = ends.client.connection.counters;
  const chunks = mode === 'large' ? Math.ceil(bytes / (64 * KIB)) : 1;
  expect({ small, medium, large }).toEqual({ small: 0, medium: 0, large: 0, [mode]: chunks });
});

test('any sizes, in order, over a link that loses packets; everything goes back to the pools', async () => {
  const ends = await TwoEnds.connected({ faults: 'random=0.01', seed: 3 });
  const messages = Array.from({ length: 150 }, (_, i) => pattern((i * 7919) % 200_000, i));
  await ends.until(Promise.all(messages.map((message) => ends.client.connection.write(message))));
  await ends.pass(SECOND / 10);
  expect(Buffer.concat(ends.server.received).equals(Buffer.concat(messages))).toBe(true);
  for (const { pools } of [ends.client, ends.server]) {
    expect([pools.local.inUse, pools.exposed.inUse]).toEqual([0, 0]);
  }
});

test('sizes are the smaller of both sides', async () => {
  const ends = await TwoEnds.connected({
    client: { smallBytesMax: 1000, slotBytes: 32 * KIB },
    server: { chunkBytes: 16 * KIB, slots: 2 },
  });
  await ends.until(ends.client.connection.write(pattern(1001, 1)));
  await ends.until(ends.client.connection.write(pattern(32 * KIB + 1, 1)));
  expect(ends.client.connection.counters).toMatchObject({ small: 0, medium: 1, large: 3 });
  for (let i = 0; i < 9; i++) await ends.until(ends.server.connection.write(pattern(20_000, i)));
  expect(ends.server.connection.counters.medium).toBe(9);
});

test('one chunk at a time in each direction', async () => {
  const ends = await TwoEnds.connected({ delayNs: 1e6 });
  void ends.client.connection.write(pattern(1 << 20, 1));
  await ends.pass(10e6);
  // Request, READ and "read done" are three ways of 1 ms and more: ten milliseconds are two chunks and something.
  expect(ends.client.connection.counters.large).toBeLessThanOrEqual(4);
});

test.each([
  ['small', 4000],
  ['medium', 60_000],
  ['large', 300_000],
] as const)('a reader of 1 MB/s stops a %s writer: memory is bounded and no RNR NAK is sent', async (_, bytes) => {
  const ends = await TwoEnds.connected({ poolBytesMax: 4 << 20 });
  const held: SuChunk[] = [];
  let arrived = 0;
  ends.server.connection.onChunk = (chunk) => {
    arrived += chunk.bytes.length;
    held.push(chunk);
  };
  const total = 3_000_000;
  let written = 0;
  const writer = (async () => {
    for (; written < total; written += bytes) await ends.client.connection.write(pattern(bytes, written));
  })();
  let heldMax = 0;
  const startNs = ends.pair.events.nowNs;
  const reader = (async () => {
    for (let read = 0; read < total; ) {
      heldMax = Math.max(
        heldMax,
        held.reduce((sum, chunk) => sum + chunk.bytes.length, 0),
      );
      const chunk = held.shift();
      if (chunk !== undefined) read += chunk.bytes.length;
      await ends.sleep(chunk === undefined ? 10_000 : chunk.bytes.length * 1000);
      chunk?.release();
    }
  })();
  await ends.until(Promise.all([writer, reader]));
  expect(arrived).toBeGreaterThanOrEqual(total);
  expect(ends.pair.events.nowNs - startNs).toBeGreaterThan(2.9 * SECOND);
  expect(heldMax).toBeLessThanOrEqual(8 * 64 * KIB);
  expect(ends.server.pools.local.registeredBytes).toBeLessThanOrEqual(4 << 20);
  for (const { player } of [ends.client, ends.server]) expect(player.device.counters().out_of_buffer).toBe(0);
});

test('an idle connection stays, and costs a message a second', async () => {
  const ends = await TwoEnds.connected();
  await ends.pass(100 * SECOND);
  expect([ends.client.failure, ends.server.failure]).toEqual([undefined, undefined]);
  await ends.until(ends.client.connection.write(pattern(10, 1)));
  expect(ends.client.connection.counters.grants).toBeLessThan(30);
});

test('a peer that falls silent is given up', async () => {
  const ends = await TwoEnds.connected({ attrA: { retryCnt: 7, timeout: 20 } });
  for (const { host } of [ends.pair.a, ends.pair.b]) host.connect(() => ends.pair.events.nowNs + 1000);
  await ends.pass(5 * SECOND);
  expect(ends.client.failure?.message).toContain('the peer was silent for 3 s');
  await expect(ends.until(ends.client.connection.write(pattern(1, 1)))).rejects.toMatchObject({ code: /ERR_ROCE_/ });
});

test('ending is graceful: the peer has everything, and may still write', async () => {
  const ends = await TwoEnds.connected();
  const data = pattern(200_000, 1);
  const written = ends.client.connection.write(data);
  await ends.until(ends.client.connection.end());
  await written;
  expect(ends.server.ended).toBe(true);
  expect(Buffer.concat(ends.server.received).equals(data)).toBe(true);
  await ends.until(ends.server.connection.write(data));
  await ends.pass(1e6);
  expect(Buffer.concat(ends.client.received).equals(data)).toBe(true);
  await expect(ends.client.connection.write(data)).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_STATE' });
});

test('aborting tells the peer why', async () => {
  const ends = await TwoEnds.connected();
  await ends.until(ends.client.connection.abort('closed', 'had enough'));
  await ends.pass(1e6);
  expect(ends.server.failure?.message).toBe('the peer gave up: closed: had enough');
});

test('sizes that cannot be are refused', async () => {
  for (const client of [{ smallBytesMax: 4057 }, { slotBytes: 0 }, { chunkBytes: (1 << 20) + 1 }, { slots: 1.5 }]) {
    await expect(TwoEnds.create({ client })).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
  }
});
