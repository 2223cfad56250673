/** Bytes that no peer sends, from both sides of NVMe/TCP: one association is lost at most, others do not notice, and nothing stays behind. */

import { expect } from 'vitest';
import { type RandomSource, randomInt, SeededRandom } from '../../../src/core/random.js';
import type { NvmeDisk } from '../src/host/nvme-disk.js';
import { OTHER_NQN, TcpWorld } from './world.js';

/** Changes some bits or bytes of what is sent, most often in the header. */
function scribble(bytes: Buffer, random: RandomSource): void {
  const reach = randomInt(random, 0, 3) === 0 ? bytes.length : Math.min(bytes.length, 80);
  for (let n = randomInt(random, 1, 3); n > 0; n--) {
    const at = randomInt(random, 0, reach - 1);
    bytes[at] = randomInt(random, 0, 1) === 0 ? bytes[at] ^ (1 << randomInt(random, 0, 7)) : random.u32();
  }
}

/** Some requests of a host, of which any may fail. */
async function someRequests(disk: NvmeDisk, random: RandomSource): Promise<void> {
  const into = Buffer.alloc(16 << 10);
  await Promise.allSettled([
    disk.write(0, Buffer.alloc(512 * randomInt(random, 1, 40), 3)),
    disk.read(0, into.length, into),
    disk.trim(0, 4096),
    disk.flush(),
  ]);
}

/**
 * Hosts of `world` talk while one side's bytes are spoilt: `rounds` messages or so. A host that is not spoilt then finds its data, and the target
 * has nothing left of the others.
 */
export async function fuzzTcp(seed: number, rounds: number, side: 'host' | 'target'): Promise<{ ended: number }> {
  const world = new TcpWorld();
  const random = new SeededRandom(seed).stream(`fuzz ${side}`);
  // In a subsystem of its own: a command that is spoilt may still be one, and write where it should not.
  const honest = await world.openDisk({ keepAliveMs: 0, nqn: OTHER_NQN });
  const data = Buffer.alloc(64 << 10, 0x5a);
  await world.until(honest.write(4 << 20, data));
  let ended = 0;
  for (let spoilt = 0; spoilt < rounds; ) {
    const digests = { header: randomInt(random, 0, 2) === 0, data: randomInt(random, 0, 2) === 0 };
    const before = world.pipes.length;
    const opening = world.openDisk({ keepAliveMs: 0, ioQueues: 1 }, digests);
    const disk = await opening;
    const [, io] = world.pipes.slice(before);
    const connections = world.target.connections.tcp;
    const isOpen = () => world.target.connections.tcp === connections;
    io[side].tamper = (bytes) => {
      if (randomInt(random, 0, 2) !== 0) return;
      spoilt++;
      scribble(bytes, random);
    };
    for (let n = 0; n < 8 && isOpen(); n++) {
      // What is spoilt may never be answered: then the host gives up.
      const requests = someRequests(disk, random);
      await world.until(Promise.race([requests, new Promise<void>((go) => world.events.after(1e9, go))]));
    }
    await world.pass(1e9);
    if (!isOpen()) ended++;
    await world.until(disk.close());
  }
  await world.pass(20e9);
  const read = Buffer.alloc(data.length);
  await world.until(honest.read(4 << 20, read.length, read));
  expect(read.equals(data)).toBe(true);
  expect(world.target.controllers).toBe(1);
  await world.until(honest.close());
  await world.pass(1e9);
  expect(world.target.connections.tcp).toBe(0);
  expect(world.memory.pool.inUse).toBe(0);
  return { ended };
}

/** Connections that send bytes without any form: each ends, and costs the target nothing. */
export async function fuzzStrangers(seed: number, connections: number): Promise<void> {
  const world = new TcpWorld();
  const random = new SeededRandom(seed).stream('strangers');
  for (let i = 0; i < connections; i++) {
    const pipe = world.pipe();
    const bytes = Buffer.from(Array.from({ length: randomInt(random, 1, 300) }, () => random.u32() & 0xff));
    // Half of them begin as a host does.
    if (randomInt(random, 0, 1) === 0) Buffer.from([0, 0, 128, 0, 128, 0, 0, 0]).copy(bytes);
    pipe.write([bytes]);
  }
  await world.pass(20e9);
  expect(world.target.connections.tcp).toBe(0);
  expect(world.target.controllers).toBe(0);
  expect(world.memory.pool.inUse).toBe(0);
}
