/** Streams whose connections die under them, at moments that a seed chooses: every byte arrives once, in order, in both directions. */

import { expect } from 'vitest';
import { randomInt, type SeededRandom } from '../../../src/core/random.js';
import { pattern } from '../sk/rig.js';
import { type Seen, StreamRig, watch } from './rig.js';

const SIZES = [1, 300, 5000, 65_496, 100_000, 200_000];

/** Writes messages of all sizes and ends the stream; all that it wrote. */
async function writeAll({ stream }: Seen, messages: readonly Buffer[]): Promise<void> {
  for (const message of messages) await stream.write(message);
  await stream.end();
}

function messagesOf(count: number, seed: number): Buffer[] {
  return Array.from({ length: count }, (_, i) => pattern(SIZES[(i * 5 + seed) % SIZES.length], i + seed));
}

/** Ends the newest connection as the seed says: from either side, or both, with or without a word to the other. */
function kill(rig: StreamRig, random: ReturnType<SeededRandom['stream']>): void {
  const { client, server } = rig.newest!;
  const how = randomInt(random, 0, 2);
  if (how !== 1) client.fail(new Error('killed at the client'));
  if (how !== 0) server.fail(new Error('killed at the server'));
}

/** `kills` connections die; now and then a transport is out of service for a while. Returns how much was sent again, and by what transports. */
export async function survive(seed: number, kills: number): Promise<{ resent: number; connections: number }> {
  const rig = await StreamRig.create({ seed, ...(seed % 2 === 0 && { faults: 'random=0.01' }), windowBytes: 1 << 20 });
  const random = rig.random.stream('kills');
  const host = rig.host({ stream: { windowBytes: 1 << 20 } });
  const client = watch(await rig.until(host.stream()));
  const server = rig.served[0];
  const [there, back] = [messagesOf(24, seed), messagesOf(18, seed + 7)];
  const written = Promise.all([writeAll(client, there), writeAll(server, back)]);
  written.catch(() => {});
  for (let i = 0; i < kills; i++) {
    await rig.pass(randomInt(random, 0, 400_000));
    if (randomInt(random, 0, 3) === 0) rig.down.add(randomInt(random, 0, 1) === 0 ? 'rdma' : 'tcp');
    kill(rig, random);
    await rig.pass(randomInt(random, 0, 60_000_000));
    rig.down.clear();
  }
  await rig.until(written);
  await rig.pass(1e9);
  for (const [seen, sent] of [
    [server, there],
    [client, back],
  ] as const) {
    expect(Buffer.concat(seen.got).equals(Buffer.concat(sent)), `seed ${seed}`).toBe(true);
    expect([seen.hasEnded, seen.failure], `seed ${seed}`).toEqual([true, undefined]);
  }
  const { counters } = client.stream;
  await rig.until(host.close());
  await rig.until(rig.acceptor.close());
  return { resent: counters.resentBytes, connections: counters.connections };
}

/** The connection dies behind its n-th frame in one direction: the first of a stream that has both transports. False: there were not so many. */
export async function dieBehindFrame(
  n: number,
  transport: 'rdma' | 'tcp',
  side: 'client' | 'server',
): Promise<boolean> {
  const rig = await StreamRig.create({ seed: n });
  if (transport === 'tcp') rig.down.add('rdma');
  let frames = 0;
  rig.onDial = (ends) => {
    const end = ends[side];
    const send = end.send.bind(end);
    end.send = async (...frame) => {
      await send(...frame);
      if (++frames === n) end.fail(new Error('killed'));
    };
  };
  const host = rig.host();
  const client = watch(await rig.until(host.stream()));
  rig.down.clear();
  const server = rig.served[0];
  const sent = messagesOf(6, n);
  await rig.until(Promise.all([writeAll(client, sent), writeAll(server, sent)]));
  await rig.pass(1e9);
  const all = Buffer.concat(sent);
  for (const seen of [client, server]) {
    expect(Buffer.concat(seen.got).equals(all), `frame ${n} over ${transport} of the ${side}`).toBe(true);
    expect([seen.hasEnded, seen.failure]).toEqual([true, undefined]);
  }
  await rig.until(host.close());
  await rig.until(rig.acceptor.close());
  return frames >= n;
}
