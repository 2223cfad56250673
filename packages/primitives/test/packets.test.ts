/** Primitives over two NICs and a bad network in virtual time: every atomic is executed once, whatever was lost, repeated or overtaken. */

import { describe, expect, it } from 'vitest';
import { randomInt, SeededRandom } from '../../../src/core/random.js';
import { connectPlayers } from '../../../test/support/connections.js';
import { createPair } from '../../../test/support/pair.js';
import { pass, until } from '../../../test/support/virtual-time.js';
import { Primitives } from '../src/client.js';
import type { Lease } from '../src/lease.js';
import { PrimitivesOwner } from '../src/owner.js';

const FAULTS = [
  undefined,
  'random=0.05',
  'reorder=0.1;duplicate=0.1',
  'random=0.03;reorder=0.05;duplicate=0.1;corrupt=0.02',
];
const CLIENTS = 3;

/** An owner on host b, clients on host a. */
async function world(seed: number, faults: string | undefined) {
  const pair = await createPair({ seed, memoryBytes: 4096, ...(faults !== undefined && { faults }) });
  const random = new SeededRandom(seed).stream('world');
  const region = pair.b.device.allocate(4096 * 8);
  const owner = new PrimitivesOwner({ region, firstNumber: 0n, areLocksHeld: false }, pair.b.device.clock);
  const clients: Primitives[] = [];
  const connections: { close(): Promise<void> }[] = [];
  for (let k = 0; k < CLIENTS; k++) {
    const ends = await connectPlayers(pair, {
      random,
      mtu: 1024,
      messageBytesMax: 4096,
      receiveDepth: 8,
      newsNs: () => randomInt(random, 0, 1e6),
    });
    connections.push(ends[0]);
    owner.add(ends[1]).catch(() => {});
    clients.push(await until(pair.events, Primitives.over(ends[0])));
  }
  const sleep = (ns: number) => new Promise<void>((resolve) => pair.events.after(ns, resolve));
  return { owner, clients, connections, random, sleep, pair, until: <T>(work: Promise<T>) => until(pair.events, work) };
}

describe.each(FAULTS)('under %j', (faults) => {
  it('counters count and sequencers give out each number once, in order', async () => {
    const { clients, until: done } = await world(1, faults);
    const numbers: bigint[] = [];
    const adds = 12;
    const work = async (client: Primitives) => {
      const counter = await client.counter('c');
      const sequencer = await client.sequencer('s');
      let last = -1n;
      await Promise.all(Array.from({ length: adds }, () => counter.add(3)));
      for (let k = 0; k < adds; k++) {
        const number = await sequencer.next(2);
        expect(number).toBeGreaterThan(last);
        last = number;
        numbers.push(number, number + 1n);
      }
    };
    await done(Promise.all(clients.map(work)));
    expect(await done((await done(clients[0].counter('c'))).get())).toBe(BigInt(3 * adds * CLIENTS));
    expect(numbers.sort((a, b) => Number(a - b))).toEqual(Array.from(numbers, (_, k) => BigInt(k)));
  });

  it('a lock has one holder, and a barrier lets nobody go on early', async () => {
    for (const seed of [1, 2]) {
      const { clients, until: done, sleep, random } = await world(seed, faults);
      const held: Lease[] = [];
      const arrived = [0, 0, 0];
      const work = async (client: Primitives) => {
        const lock = await client.lock('l', { leaseMs: 10 });
        const barrier = await client.barrier('b', { parties: CLIENTS });
        for (let round = 0; round < 3; round++) {
          await lock.run(async (lease) => {
            held.push(lease);
            expect(held.filter(({ isHeld }) => isHeld).length).toBeLessThanOrEqual(1);
            await sleep(randomInt(random, 0, 2e6));
          });
          arrived[round]++;
          await barrier.wait();
          expect(arrived[round]).toBe(CLIENTS);
        }
      };
      await done(Promise.all(clients.map(work)));
      const tokens = held.map(({ token }) => token);
      expect(tokens).toEqual([...tokens].sort((a, b) => Number(a - b)));
      expect(new Set(tokens).size).toBe(3 * CLIENTS);
    }
  });
});

describe('the end', () => {
  it('of a holder gives the lock to the next one, at the end of its lease', async () => {
    const { clients, until: done, connections, pair } = await world(1, 'random=0.02');
    const locks = await Promise.all(clients.map((client) => done(client.lock('l', { leaseMs: 20 }))));
    const lease = await done(locks[0].acquire());
    const waiting = locks[1].acquire();
    await pass(pair.events, 50e6);
    expect(lease.isHeld).toBe(true);
    await connections[0].close();
    expect(lease.signal.reason).toMatchObject({ code: 'ERR_ROCE_FENCED' });
    const diedNs = pair.events.nowNs;
    const next = await done(waiting);
    expect(next.token).toBe(lease.token + 1n);
    expect(pair.events.nowNs - diedNs).toBeLessThan(60e6);
  });

  it('of the owner ends every call and every lease', async () => {
    const { owner, clients, until: done, pair } = await world(1, undefined);
    const locks = await Promise.all(clients.map((client) => done(client.lock('l', { leaseMs: 1000 }))));
    const lease = await done(locks[0].acquire());
    const waiting = expect(done(locks[1].acquire())).rejects.toBeInstanceOf(Error);
    await pass(pair.events, 5e6);
    await owner.close();
    await waiting;
    await pass(pair.events, 5e6);
    expect(lease.isHeld).toBe(false);
    expect(lease.signal.aborted).toBe(true);
    await expect(done(clients[0].counter('c'))).rejects.toBeInstanceOf(Error);
  });
});
