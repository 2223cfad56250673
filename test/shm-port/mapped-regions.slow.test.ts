/** Mapped regions on real sockets and memory: programs see what they see without, and conditions end the direct path. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import { batchedUdpAvailable } from '../../src/dgram-ext/index.js';
import * as sources from '../../src/index.js';
import { Access, type Connection, connect, type DeviceOptions, listen, openDevice } from '../../src/index.js';
import { GrantReader } from '../../src/memory/mapped/grant-table.js';
import { DirectCompletions } from '../../src/verbs/direct-completions.js';
import type { MemoryRegion } from '../../src/verbs/memory-region.js';
import type { SendWorkRequest } from '../../src/verbs/send-work-request.js';
import { connectionContract } from '../contracts/connection-contract.js';
import { registeredMemoryContract } from '../contracts/registered-memory-contract.js';
import { Dice, fillRandom } from '../support/dice.js';

const [SERVER, CLIENT] = ['127.53.11.1', '127.53.11.2'];
const BYTES = 16_384;
const MAPPING: Partial<DeviceOptions> = { io: 'auto' };

const closing: Array<{ close(): Promise<void> }> = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const one of closing.splice(0).reverse()) await one.close();
});

interface Ends {
  readonly server: Connection;
  readonly client: Connection;
  /** What the server opened. */
  readonly memory: Buffer;
  readonly local: MemoryRegion;
}

async function connected(server: Partial<DeviceOptions> = MAPPING, client = server, depth = 64): Promise<Ends> {
  const [a, b] = [
    await openDevice({ address: SERVER, udpPort: 0, ...server }),
    await openDevice({ address: CLIENT, udpPort: 0, ...client }),
  ];
  closing.push(a, b);
  const memory = a.allocate(BYTES);
  const listener = await listen(a, { port: 0, region: memory, receiveDepth: depth });
  closing.push(listener);
  const [served, dialled] = await Promise.all([listener.accept(), connect(b, { host: SERVER, port: listener.port })]);
  const local = await dialled.register(BYTES, Access.LOCAL_WRITE);
  return { server: served, client: dialled, memory, local };
}

const direct = ({ client }: Ends) => {
  const { direct_writes, direct_reads, direct_atomics, tx_data_packets } = client.device.counters();
  return { writes: direct_writes, reads: direct_reads, atomics: direct_atomics, packets: tx_data_packets };
};

const regionOf = ({ server, client }: Ends) =>
  [...server.qp.pd.regions.values()].find(({ rkey }) => rkey === client.remote!.rkey)!;

describe.skipIf(batchedUdpAvailable() !== undefined)('mapped regions (need koffi on Linux)', () => {
  const under = { api: sources, options: MAPPING, server: '127.53.12.1', client: '127.53.12.2' };
  connectionContract('connections over mapped regions', under);
  registeredMemoryContract('registered memory over mapped regions', under);

  it('carry WRITEs, READs and atomics without a packet and without the server, whose memory they change', async () => {
    const ends = await connected();
    const { client, memory, local } = ends;
    expect(client.agreement).toMatchObject({ sharesMemory: true, mapsRegion: true });
    const before = ends.server.device.counters();
    fillRandom(local.bytes, new SeededRandom(1).stream('data'));
    await client.write(local.slice(3, 5000), 77);
    expect(memory.subarray(77, 5077)).toEqual(local.bytes.subarray(3, 5003));
    expect(await client.read(4999, 78)).toEqual(memory.subarray(78, 5077));
    memory.writeBigUInt64LE(2n ** 64n - 2n, 8192);
    expect(await client.fetchAdd(8192, 3n)).toBe(2n ** 64n - 2n);
    expect(await client.compareSwap(8192, 1n, 99n)).toBe(1n);
    expect(await client.compareSwap(8192, 1n, 5n)).toBe(99n);
    expect(memory.readBigUInt64LE(8192)).toBe(99n);
    // A READ into memory of its own registers it; the bytes are the same.
    expect(direct(ends)).toEqual({ writes: 1, reads: 1, atomics: 3, packets: 0 });
    const { rx_packets, rx_write_requests } = ends.server.device.counters();
    expect(rx_write_requests).toBe(before.rx_write_requests);
    expect(rx_packets).toBe(before.rx_packets);
  });

  it.each<[string, Partial<DeviceOptions>]>([
    ['one end does not want it', { io: 'auto', mapRegions: false }],
    ['one end speaks UDP', { io: 'mmsg', mapRegions: true }],
    ['one end has fault rules', { ...MAPPING, loss: 'every=100000' }],
  ])('carry nothing where %s, whichever', async (_, other) => {
    for (const [server, client] of [
      [MAPPING, other],
      [other, MAPPING],
    ]) {
      const ends = await connected(server, client);
      expect(ends.client.agreement.mapsRegion).toBe(false);
      await ends.client.write(Buffer.from('by packets'), 5);
      expect(ends.memory.toString('latin1', 5, 15)).toBe('by packets');
      expect(direct(ends).writes).toBe(0);
      expect(direct(ends).packets).toBeGreaterThan(0);
      for (const one of closing.splice(0).reverse()) await one.close();
    }
  });

  it.each<[string, boolean, object, object]>([
    ['a rate control of the requester has packets to pace', false, {}, { rateControl: { name: 'dcqcn' } }],
    ['a rate control of the owner has READ responses to pace', false, { rateControl: { name: 'dcqcn' } }, {}],
    ['the program made the memory itself', false, { region: Buffer.alloc(100) }, {}],
    ['there is no reason not to', true, {}, { rateControl: { name: 'none' } }],
  ])('are copies or not where %s: %s', async (_, maps, server, client) => {
    const ends = await connected();
    const region = ends.server.device.allocate(100);
    const listener = await listen(ends.server.device, { port: 0, region, ...server });
    closing.push(listener);
    const dial = connect(ends.client.device, { host: SERVER, port: listener.port, ...client });
    const [, dialled] = await Promise.all([listener.accept(), dial]);
    expect(dialled.agreement).toMatchObject({ sharesMemory: true, mapsRegion: maps });
    await dialled.write(Buffer.from('x'));
    expect(direct(ends).writes).toBe(Number(maps));
  });

  describe('of a server that withdraws access', () => {
    it('end with the region, and the WRITE fails as the standard says', async () => {
      const ends = await connected();
      const { client, local, memory } = ends;
      await client.write(local.slice(0, 64));
      await regionOf(ends).close();
      memory.fill(1);
      local.bytes.fill(2);
      await expect(client.write(local.slice(0, 64))).rejects.toThrow('remote access error');
      expect(memory.every((byte) => byte === 1)).toBe(true);
      expect(direct(ends).writes).toBe(1);
    });

    it('end with the queue pair that leaves the states in which it answers', async () => {
      const ends = await connected();
      await ends.server.qp.modify({ state: 'ERR' });
      ends.client.qp.postSend(writeOf(ends, 0));
      expect(direct(ends).writes).toBe(0);
    });
  });

  function writeOf({ client, local }: Ends, wrId: number, offset = 0, length = 64): SendWorkRequest {
    const { addr, rkey } = client.remote!;
    const sges = [local.sge(offset, length)];
    return { opcode: 'RDMA_WRITE', wrId, sges, remoteAddr: addr + BigInt(offset), rkey };
  }

  it('do not overtake a WRITE of the same place by packets, here through a window', async () => {
    const ends = await connected();
    const { client, server, memory, local } = ends;
    const { pd } = server.qp;
    const mr = await pd.regMr(memory, Access.LOCAL_WRITE | Access.MW_BIND);
    const mw = await pd.allocMw(2);
    const windowKey = mw.nextRkey();
    const bound = { mw, rkey: windowKey, mr, offset: 0, length: BYTES, access: Access.REMOTE_WRITE };
    await server.post({ opcode: 'BIND_MW', ...bound });
    const { addr, rkey } = client.remote!;
    const write = (offset: number, remoteAddr: bigint, key: number) =>
      client.post({ opcode: 'RDMA_WRITE', sges: [local.sge(offset, 8192)], remoteAddr, rkey: key });
    for (let n = 0; n < 50; n++) {
      local.bytes.fill(1, 0, 8192);
      local.bytes.fill(2, 8192);
      await Promise.all([write(0, mr.addr, windowKey), write(8192, addr, rkey)]);
      expect(memory.subarray(0, 8192).every((byte) => byte === 2)).toBe(true);
    }
    // The same WRITE alone is a copy; behind the other it takes packets.
    const { writes } = direct(ends);
    await write(8192, addr, rkey);
    expect(direct(ends).writes).toBe(writes + 1);
  });

  async function completionOrder(): Promise<number[]> {
    const { client, server, local } = await connected();
    const { addr, rkey } = client.remote!;
    const order: number[] = [];
    const posted: Promise<unknown>[] = [];
    const post = (wrId: number, request: SendWorkRequest) =>
      posted.push(client.post(request).then(() => order.push(wrId)));
    const write = { opcode: 'RDMA_WRITE', sges: [local.sge(0, 64)], remoteAddr: addr, rkey } as const;
    for (let wrId = 0; wrId < 20; wrId++) post(wrId, write);
    post(20, { opcode: 'SEND', sges: [local.sge(0, 64)] });
    // The SEND is acknowledged before any completion has been taken.
    for (let n = 0; n < 10; n++) for (const { device } of [client, server]) device.poll();
    for (let wrId = 21; wrId < 24; wrId++) post(wrId, write);
    await Promise.all(posted);
    return order;
  }

  it('complete in the order of posting, mixed with packets', async () => {
    expect(await completionOrder()).toEqual(Array.from({ length: 24 }, (_, i) => i));
  });

  it('mutant: a completion by packets that is taken too early is found', async () => {
    vi.spyOn(DirectCompletions.prototype, 'holds').mockReturnValue(false);
    expect(await completionOrder()).not.toEqual(Array.from({ length: 24 }, (_, i) => i));
  });

  /** Deregisters the opened region, and grants another one in its slot. */
  async function regranted() {
    const ends = await connected();
    const { client, server, memory, local } = ends;
    local.bytes.fill(2);
    await client.write(local.slice(0, 64));
    await regionOf(ends).close();
    memory.fill(1);
    const other = server.device.allocate(BYTES);
    await server.qp.pd.regMr(other, Access.REMOTE_ALL);
    const outcome = await client.write(local.slice(0, 64)).then(() => 'done', String);
    return { outcome, changed: [memory, other].map((bytes) => bytes.includes(2)), writes: direct(ends).writes };
  }

  it('of a slot that has another grant are not used', async () => {
    const { outcome, ...rest } = await regranted();
    expect(outcome).toContain('remote access error');
    expect(rest).toEqual({ changed: [false, false], writes: 1 });
  });

  it('mutant: a requester that ignores the generation is found', async () => {
    vi.spyOn(GrantReader.prototype, 'isCurrent').mockReturnValue(true);
    expect(await regranted()).toEqual({ outcome: 'done', changed: [true, false], writes: 2 });
  });

  it.each([1, 2, 3])('execute a random program in the order of posting, seed %i', async (seed) => {
    const ends = await connected();
    const { client, server, memory, local } = ends;
    const random = new Dice(new SeededRandom(seed).stream('program'));
    const { qp } = client;
    const model = Buffer.from(memory);
    for (let n = 0; n < 300; n++) {
      const length = random.pick([1, 8, 64, 65, 1000, 4096]);
      const offset = random.int(0, BYTES - length);
      const kind = random.int(0, 4);
      if (kind === 0) {
        fillRandom(local.bytes.subarray(0, length), random.source);
        local.bytes.copy(model, offset, 0, length);
        // A message that is under way makes the WRITE behind it take packets, and it must not be overtaken.
        const sent = random.chance(0.3) ? client.send(Buffer.from([n])) : undefined;
        await Promise.all([client.write(local.slice(0, length), offset), sent]);
        if (sent !== undefined) expect((await server.receive()).data).toEqual(Buffer.from([n & 0xff]));
      } else if (kind === 1) {
        expect(await client.read(length, offset)).toEqual(model.subarray(offset, offset + length));
      } else if (kind === 2) {
        const at = offset & ~7;
        const before = model.readBigUInt64LE(at);
        const add = random.u64();
        model.writeBigUInt64LE(BigInt.asUintN(64, before + add), at);
        expect(await client.fetchAdd(at, add)).toBe(before);
      } else if (kind === 3) {
        const at = offset & ~7;
        const before = model.readBigUInt64LE(at);
        const expected = random.chance(0.5) ? before : random.u64();
        const desired = random.u64();
        if (expected === before) model.writeBigUInt64LE(desired, at);
        expect(await client.compareSwap(at, expected, desired)).toBe(before);
      } else {
        // A pipeline of two WRITEs of the same place, the first behind a message.
        local.bytes.fill(n & 0xff, 0, length);
        local.bytes.fill(~n & 0xff, 8192, 8192 + length);
        const both = [
          client.send(Buffer.from([n])),
          client.write(local.slice(0, length), offset),
          client.write(local.slice(8192, length), offset),
        ];
        await Promise.all(both);
        await server.receive();
        model.fill(~n & 0xff, offset, offset + length);
      }
      expect(memory.equals(model)).toBe(true);
    }
    expect(qp.state).toBe('RTS');
    const counts = direct(ends);
    expect(Math.min(counts.writes, counts.reads, counts.atomics, counts.packets)).toBeGreaterThan(10);
  });
});
