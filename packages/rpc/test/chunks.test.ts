/** How large values are read from the peer's memory: one chunk at a time, whatever is asked for at once. What that is for: packages/extents/test/reconstruct-incast.test.ts. */

import { expect, it } from 'vitest';
import { z } from 'zod';
import { connectRpc, defineService, serveRpc } from '../src/index.js';
import { connectionPairs } from './pair.js';

const pairOf = connectionPairs({ address: '127.0.2.18' });
const CHUNK_BYTES = 65_536;

it('bodies come in READs of 64 KiB, one under way per connection, and are whole', async () => {
  const { server, client } = await pairOf();
  const reads: number[] = [];
  let [underWay, most] = [0, 0];
  const read = client.readClaimed.bind(client);
  client.readClaimed = async (into, remoteAddr, rkey) => {
    reads.push(into.length);
    most = Math.max(most, ++underWay);
    await read(into, remoteAddr, rkey);
    underWay--;
  };
  const bodyOf = (bytes: number) => Buffer.from(Array.from({ length: bytes }, (_, k) => (k * 31 + (k >> 8)) & 0xff));
  const service = defineService({ body: { input: z.number(), output: z.instanceof(Uint8Array) } });
  serveRpc(server, service, { body: bodyOf });
  const { body } = connectRpc(client, service).methods;
  const lengths = [200_000, CHUNK_BYTES, CHUNK_BYTES + 1, 300_000];
  const bodies = await Promise.all(lengths.map((length) => body(length)));
  for (const [k, length] of lengths.entries()) expect(Buffer.from(bodies[k]).equals(bodyOf(length))).toBe(true);
  expect(most).toBe(1);
  expect(Math.max(...reads)).toBe(CHUNK_BYTES);
});
