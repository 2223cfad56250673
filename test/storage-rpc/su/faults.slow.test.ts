import { expect, test } from 'vitest';
import { pattern } from '../sk/rig.js';
import { failAllocation, killAtRandom } from './faults.js';
import { TwoEnds } from './two-ends.js';

test('a peer killed at 12 random moments: no wrong data, and all buffers come back', async () => {
  for (let seed = 1; seed <= 12; seed++) await killAtRandom(seed);
});

test.each([1, 2, 3, 10, 77, 300, 480])(
  'allocation %i fails: the connection ends, and nothing is lost with it',
  async (n) => {
    expect(await failAllocation(n)).toBe(true);
  },
);

test('allocation 100,000 is never asked for: the transfer ends well', async () => {
  expect(await failAllocation(100_000)).toBe(false);
});

/** Changes a byte of the first `times` large chunks that the server reads, where it reads it from; it is whole again afterwards. */
function spoil(ends: TwoEnds, times: number): void {
  const { exposed } = ends.client.pools;
  const acquire = exposed.acquire.bind(exposed);
  let source: Uint8Array = new Uint8Array(0);
  exposed.acquire = async (bytes) => {
    const lease = await acquire(bytes);
    source = lease.bytes;
    return lease;
  };
  const { qp } = ends.server.player;
  const post = qp.postSend.bind(qp);
  let reads = 0;
  let changed = false;
  qp.postSend = (...requests) => {
    if (requests[0].opcode === 'RDMA_READ') {
      const change = reads++ < times;
      if (change !== changed) source[100] ^= 1;
      changed = change;
    }
    post(...requests);
  };
}

const ONE_CHUNK = { chunkBytes: 70_000 };

test.each([1, 2])('large data that is wrong %i times is read again, and delivered right', async (times) => {
  const ends = await TwoEnds.connected({ client: ONE_CHUNK, server: ONE_CHUNK });
  spoil(ends, times);
  const data = pattern(70_000, 1);
  await ends.until(ends.client.connection.write(data));
  await ends.pass(1e6);
  expect(ends.server.connection.counters.crcMismatches).toBe(times);
  expect(Buffer.concat(ends.server.received).equals(data)).toBe(true);
});

test('data that is always wrong ends the connection, and is never delivered', async () => {
  const ends = await TwoEnds.connected({ client: ONE_CHUNK, server: ONE_CHUNK });
  spoil(ends, 1000);
  await expect(ends.until(ends.client.connection.write(pattern(70_000, 1)))).rejects.toThrow('3 times');
  await ends.pass(1e9);
  expect(ends.server.failure?.message).toContain('the peer gave up: crc');
  expect(ends.server.received).toEqual([]);
});

test.each([
  ['small', 4000],
  ['medium', 50_000],
] as const)(
  '%s data that changed after it was summed ends the connection, and is never delivered',
  async (_, bytes) => {
    const ends = await TwoEnds.connected();
    const { qp } = ends.client.player;
    const post = qp.postSend.bind(qp);
    const { local } = ends.client.pools;
    const acquire = local.acquire.bind(local);
    let source: Uint8Array = new Uint8Array(0);
    local.acquire = async (length) => {
      const lease = await acquire(length);
      source = lease.bytes;
      return lease;
    };
    qp.postSend = (...requests) => {
      if (source.length > 100) source[100] ^= 1;
      source = new Uint8Array(0);
      post(...requests);
    };
    await ends.until(Promise.allSettled([ends.client.connection.write(pattern(bytes, 1))]));
    await ends.pass(1e9);
    expect(ends.server.connection.counters.crcMismatches).toBe(1);
    expect(ends.server.received).toEqual([]);
    expect(ends.client.failure?.message).toContain('the peer gave up: crc');
  },
);
