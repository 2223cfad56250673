/**
 * The hidden fence (Azure storage paper §8.3): a NIC that starts a memory registration only after all earlier work requests have completed
 * gives one request a round trip, whatever the queue depth.
 */

import { expect, test } from 'vitest';
import { Rig, readIo, writeIo } from './rig.js';

const RTT_NS = 2e6;
const ROUNDS = 20;

/** Requests a second at a queue depth, each followed by the next as soon as it is answered. */
async function iops(queueDepth: number, op: 'READ' | 'WRITE'): Promise<number> {
  const rig = await Rig.create({ delayNs: RTT_NS / 2, rateBps: 40e9 });
  const session = await rig.connected('rdma', { inlineWriteBytesMax: 0 });
  const bytes = Buffer.alloc(4096, 1);
  await rig.until(session.submit(readIo(0, bytes))); // The pool has its first slab, registered by a command.
  const startNs = rig.clock.nowNs();
  const worker = async (n: number) => {
    for (let i = 0; i < ROUNDS; i++) {
      await session.submit(op === 'READ' ? readIo(n * 4096, Buffer.alloc(4096)) : writeIo(n * 4096, bytes));
    }
  };
  await rig.until(Promise.all(Array.from({ length: queueDepth }, (_, n) => worker(n))));
  return (queueDepth * ROUNDS * 1e9) / (rig.clock.nowNs() - startNs);
}

test('registrations depend on nothing before them: 32 reads of 4 KiB at 2 ms round trip make 14,400 a second', async () => {
  expect(await iops(32, 'READ')).toBeGreaterThan((0.9 * 32 * 1e9) / RTT_NS);
});

test('pulled writes take two round trips, and scale with the depth up to the READs outstanding', async () => {
  expect(await iops(16, 'WRITE')).toBeGreaterThan((0.9 * 16 * 1e9) / (2 * RTT_NS));
});

test('it is the depth that does it: one at a time makes one a round trip', async () => {
  expect(await iops(1, 'READ')).toBeLessThan((1.05 * 1e9) / RTT_NS);
});
