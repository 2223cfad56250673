/** NVMe over RDMA between simulated NICs: data is right whatever the link loses, and nothing is reached after its time. */

import { describe, expect, it } from 'vitest';
import { randomInt, SeededRandom } from '../../../src/core/random.js';
import type { SendWorkRequest } from '../../../src/verbs/send-work-request.js';
import type { NvmeDisk } from '../src/host/nvme-disk.js';
import { RdmaWorld } from './rdma-world.js';

/** Requests side by side over the disk, held against a model; each range belongs to one request at a time. */
async function exercise(world: RdmaWorld, disk: NvmeDisk, seed: number): Promise<void> {
  const random = new SeededRandom(seed).stream('requests');
  const { sizeBytes } = disk;
  const model = Buffer.alloc(sizeBytes);
  for (let round = 0; round < 3; round++) {
    const work: Promise<void>[] = [];
    for (let part = 0; part < 16; part++) {
      const begin = part * (sizeBytes / 16);
      const length = 512 * randomInt(random, 1, sizeBytes / 16 / 512);
      const kind = randomInt(random, 0, 9);
      if (kind < 6) {
        const data = Buffer.alloc(length, randomInt(random, 1, 255));
        data.copy(model, begin);
        work.push(disk.write(begin, data, { fua: kind === 0 }));
      } else if (kind < 8) {
        model.fill(0, begin, begin + length);
        work.push(disk.writeZeroes(begin, length));
      } else work.push(disk.flush());
    }
    await world.until(Promise.all(work));
    const read = Buffer.alloc(sizeBytes);
    await world.until(disk.read(0, read.length, read));
    expect(read.equals(model), `seed ${seed}, round ${round}`).toBe(true);
  }
}

/** Watches the keys of a connection; those that its target uses after the answer to their command has been posted. */
function lateKeys({ host, target }: RdmaWorld['connections'][number]): { late: number[]; used: number } {
  const seen = { late: [] as number[], used: 0 };
  const answered = new Set<number>();
  const register = host.qp.postSend.bind(host.qp);
  host.qp.postSend = (...requests) => {
    for (const request of requests) if (request.opcode === 'REG_MR') answered.delete(request.key);
    register(...requests);
  };
  const post = target.qp.postSend.bind(target.qp);
  target.qp.postSend = (...requests) => {
    for (const request of requests) {
      if (request.opcode === 'SEND_WITH_INV') answered.add(request.invalidateRkey);
      if (request.opcode !== 'RDMA_READ' && request.opcode !== 'RDMA_WRITE') continue;
      seen.used++;
      if (answered.has(request.rkey)) seen.late.push(request.rkey);
    }
    post(...requests);
  };
  return seen;
}

describe('NVMe over RDMA', () => {
  it('moves data of all lengths, and leaves nothing behind', async () => {
    const world = await RdmaWorld.create();
    const disk = await world.openDisk();
    await exercise(world, disk, 1);
    await world.until(disk.close());
    await world.until(world.target.close());
    expect(world.memory.pool.inUse).toBe(0);
    expect(world.target.controllers).toBe(0);
  });

  it.each([1])('moves it through a link that loses, doubles and reorders packets, seed %i', async (seed) => {
    const world = await RdmaWorld.create({ seed, faults: 'random=0.003; duplicate=0.003; reorder=0.003' });
    await exercise(world, await world.openDisk({ keepAliveMs: 0 }), seed);
  });

  it('uses no key after it has posted the answer to its command', async () => {
    const world = await RdmaWorld.create({ seed: 1, faults: 'random=0.003; reorder=0.003' });
    const disk = await world.openDisk({ keepAliveMs: 0 });
    const queues = world.connections.map(lateKeys);
    await exercise(world, disk, 1);
    expect(queues.flatMap(({ late }) => late)).toEqual([]);
    expect(queues.reduce((sum, { used }) => sum + used, 0)).toBeGreaterThan(20);
  });

  it('would be seen to, if it posted the answer first', async () => {
    const world = await RdmaWorld.create();
    const disk = await world.openDisk({ keepAliveMs: 0 });
    const { target } = world.connections[2];
    const queues = world.connections.map(lateKeys);
    const post = target.qp.postSend.bind(target.qp);
    let held: SendWorkRequest[] = [];
    target.qp.postSend = (...requests) => {
      if (requests[0].opcode === 'RDMA_WRITE') held = [...requests];
      else {
        post(...requests, ...held);
        held = [];
      }
    };
    for (let n = 0; n < 2; n++) world.until(disk.read(0, 4096, Buffer.alloc(4096))).catch(() => {});
    await world.pass(1e6);
    expect(queues.flatMap(({ late }) => late).length).toBeGreaterThan(0);
  });

  it('ends both sides when the link is cut, and serves a host that comes again', async () => {
    const world = await RdmaWorld.create();
    const disk = await world.openDisk();
    await world.until(disk.write(0, Buffer.alloc(4096, 1)));
    world.cut();
    await expect(world.until(disk.write(0, Buffer.alloc(1 << 20, 2)))).rejects.toThrow();
    await world.pass(20e9);
    expect(world.target.controllers).toBe(0);
    world.heal();
    const again = await world.openDisk();
    const read = Buffer.alloc(4096);
    await world.until(again.read(0, 4096, read));
    expect([1, 2]).toContain(read[0]);
  });

  it('ends the connection of a host that names a key it has not opened, and no other', async () => {
    const world = await RdmaWorld.create();
    const [bad, good] = [await world.openDisk(), await world.openDisk()];
    const { host } = world.connections[1];
    const post = host.qp.postSend.bind(host.qp);
    host.qp.postSend = (...requests) => {
      for (const request of requests) if (request.opcode !== 'REG_MR') post(request); // The key stays closed.
    };
    await expect(
      world.until(Promise.all([0, 1].map((i) => bad.write(i << 20, Buffer.alloc(1 << 20))))),
    ).rejects.toThrow();
    await world.until(good.write(0, Buffer.alloc(1 << 20, 5)));
    const read = Buffer.alloc(1 << 20);
    await world.until(good.read(0, read.length, read));
    expect(read.every((byte) => byte === 5)).toBe(true);
  });
});
