/** Things that go wrong in the middle of a transfer, and what must hold whatever they are. */

import { expect } from 'vitest';
import { randomInt, SeededRandom } from '../../../src/core/random.js';
import { pattern } from '../sk/rig.js';
import { type SuEnd, TwoEnds } from './two-ends.js';

const SIZES = [1, 300, 4056, 5000, 40_000, 65_536, 100_000, 200_000];

/** Writes messages of all modes until all are written or the connection ends; what it wrote, in order. */
async function writeAll(ends: TwoEnds, count: number, seed: number): Promise<Buffer> {
  const messages = Array.from({ length: count }, (_, i) => pattern(SIZES[(i * 5 + seed) % SIZES.length], i + seed));
  await Promise.allSettled(messages.map((message) => ends.client.connection.write(message)));
  return Buffer.concat(messages);
}

/** What was delivered is what was sent, as far as it goes, and nothing is left on loan. */
function check(ends: TwoEnds, sent: Buffer): void {
  const got = Buffer.concat(ends.server.received);
  expect(got.equals(sent.subarray(0, got.length))).toBe(true);
  for (const { pools } of [ends.client, ends.server]) {
    expect([pools.local.inUse, pools.exposed.inUse]).toEqual([0, 0]);
  }
}

/** One of the peers is gone at some moment of the transfer. */
export async function killAtRandom(seed: number): Promise<void> {
  const random = new SeededRandom(seed).stream('kill');
  const ends = await TwoEnds.connected({ seed, ...(seed % 2 === 0 && { faults: 'random=0.01' }) });
  const sent = writeAll(ends, 24, seed);
  await ends.pass(randomInt(random, 0, 1_500_000));
  const [victim, survivor] = seed % 3 === 0 ? [ends.server, ends.client] : [ends.client, ends.server];
  await ends.until(victim.connection.close());
  victim.player.host.connect(() => ends.pair.events.nowNs + 1000);
  await ends.pass(5e9);
  await ends.until(survivor.connection.close());
  check(ends, await ends.until(sent));
}

/** The n-th request for a buffer, of either side, is refused. Returns whether it came to that. */
export async function failAllocation(n: number): Promise<boolean> {
  const ends = await TwoEnds.connected();
  let asked = 0;
  const sabotage = ({ pools }: SuEnd) => {
    for (const pool of [pools.local, pools.exposed]) {
      const acquire = pool.acquire.bind(pool);
      pool.acquire = (bytes) => (++asked === n ? Promise.reject(new Error('no memory')) : acquire(bytes));
    }
  };
  sabotage(ends.client);
  sabotage(ends.server);
  const sent = await ends.until(writeAll(ends, 300, 1));
  await ends.pass(1e9);
  const failed = asked >= n;
  expect([ends.client.failure, ends.server.failure].every((failure) => (failure !== undefined) === failed)).toBe(true);
  check(ends, sent);
  return failed;
}
