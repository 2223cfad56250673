/** Memory that an RPC lends to its peer: the peer can read all of a region, so nothing of other connections may be in it. */

import { expect, test } from 'vitest';
import { Access } from '../../../src/index.js';
import { RegionCache } from '../src/region-cache.js';
import { connectionPairs } from './pair.js';

const pairOf = connectionPairs({ address: '127.0.2.17' });
const REGION_BYTES = 4096;
const BODY_BYTES = 100;

/** What a peer that was lent a body reads of the region around it, when another connection had its memory before. */
async function readsOfPeer(access: number): Promise<Buffer> {
  const { server, client } = await pairOf();
  const { scratch } = server.device;
  const left = scratch.take(REGION_BYTES);
  left.fill('secret of another connection. ');
  scratch.give(left);
  const pool = new RegionCache(server, access, REGION_BYTES);
  const region = await pool.take(BODY_BYTES);
  expect(region.length).toBe(REGION_BYTES);
  region.bytes.fill(7, 0, BODY_BYTES);
  const into = client.device.scratch.take(REGION_BYTES);
  client.claim('a test');
  await client.readClaimed(into, region.addr, region.rkey);
  return into;
}

test('a peer finds nothing around a body that it was lent', async () => {
  const read = await readsOfPeer(Access.REMOTE_READ);
  expect(read.subarray(0, BODY_BYTES).every((byte) => byte === 7)).toBe(true);
  expect(read.subarray(BODY_BYTES).every((byte) => byte === 0)).toBe(true);
});

test('a peer cannot read memory that is for messages', async () => {
  await expect(readsOfPeer(0)).rejects.toThrow(/REM_ACCESS_ERR|access/i);
});
