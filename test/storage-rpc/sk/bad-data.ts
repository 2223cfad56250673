/** Data that changes between the last packet and the memory it ends in, or before the first: right packets, wrong data. */

import { expect } from 'vitest';
import { pattern, Rig, readIo, writeIo } from './rig.js';

const IO_BYTES = 8192;
const PLACES = 512;

/** `count` writes, and as many reads, each of which goes wrong once. Every one must be caught, and be right the second time. */
export async function checkBadData(count: number): Promise<void> {
  const rig = await Rig.create();
  const session = await rig.connected('rdma', { inlineWriteBytesMax: 0 });
  session.onLost = (_, error) => expect.unreachable(error.message);
  const { client, server } = rig.rdma!;
  const { pull } = server;
  const { onReply } = client;
  let goesWrong = false;
  let flips = 0;
  const flip = (bytes: Uint8Array) => {
    if (goesWrong) bytes[(flips * 37) % IO_BYTES] ^= 1 << (flips % 8);
    if (goesWrong) flips++;
    goesWrong = false;
  };
  server.pull = async (request, into, from, length) => {
    await pull.call(server, request, into, from, length);
    flip(into.bytes);
  };
  client.onReply = (reply) => {
    if (reply.data.length > 0) flip(reply.data);
    onReply(reply);
  };
  for (let n = 0; n < count; n++) {
    const offset = (n % PLACES) * IO_BYTES;
    const data = pattern(IO_BYTES, n);
    goesWrong = true;
    await rig.until(session.submit(writeIo(offset, data)));
    goesWrong = true;
    const into = Buffer.alloc(IO_BYTES);
    await rig.until(session.submit(readIo(offset, into)));
    expect(into.equals(data)).toBe(true);
    const stored = Buffer.alloc(IO_BYTES);
    await rig.disk.read(offset, IO_BYTES, stored);
    expect(stored.equals(data)).toBe(true);
  }
  expect(flips).toBe(2 * count);
  expect(rig.server.counters.crcMismatches).toBe(count);
  expect(session.counters.crcMismatches).toBe(2 * count);
}
