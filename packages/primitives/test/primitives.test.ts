/** Primitives on sockets, as programs use them. */

import { describe, expect, it } from 'vitest';
import { batchedUdpAvailable } from '../../../src/dgram-ext/index.js';
import { listen } from '../../../src/index.js';
import { devicesAt } from '../../../test/support/devices.js';
import {
  openPrimitives,
  type Primitives,
  type PrimitivesServer,
  type ServePrimitivesOptions,
  servePrimitives,
} from '../src/index.js';

const ADDRESS = '127.0.4.5';

const device = devicesAt(ADDRESS);

async function start(
  options: Partial<ServePrimitivesOptions> = {},
): Promise<{ owner: PrimitivesServer; one: Primitives; other: Primitives }> {
  const owner = await servePrimitives({ device: await device(), port: 0, ...options });
  const open = async () => openPrimitives({ device: await device(), host: ADDRESS, port: owner.port });
  return { owner, one: await open(), other: await open() };
}

describe('a counter', () => {
  it('is one number for all, with sign', async () => {
    const { one, other, owner } = await start();
    const [mine, theirs] = [await one.counter('visits'), await other.counter('visits')];
    await Promise.all(Array.from({ length: 100 }, (_, k) => (k % 2 === 0 ? mine : theirs).add(2)));
    expect(await mine.get()).toBe(200n);
    expect(await theirs.add(-300n)).toBe(-100n);
    expect(await mine.get()).toBe(-100n);
    expect(await mine.compareAndSet(-100n, 7n)).toBe(-100n);
    expect(await mine.compareAndSet(-100n, 8n)).toBe(7n);
    expect(await theirs.add()).toBe(8n);
    expect([owner.clients, owner.names]).toEqual([2, 1]);
  });
});

describe('the memory of a local owner', () => {
  it.skipIf(batchedUdpAvailable() !== undefined)('is mapped where both share memory, and not otherwise', async () => {
    const owner = await servePrimitives({ device: await device({ io: 'auto' }), port: 0 });
    for (const io of ['auto', 'dgram'] as const) {
      const client = await openPrimitives({ device: await device({ io }), host: ADDRESS, port: owner.port });
      expect(client.mapsRegion).toBe(io === 'auto');
      await (await client.counter('visits')).add();
    }
  });
});

describe('a sequencer', () => {
  it('gives each number once, and a later owner gives greater ones', async () => {
    const { one, other, owner } = await start();
    const [mine, theirs] = [await one.sequencer('ids'), await other.sequencer('ids')];
    const numbers = await Promise.all(Array.from({ length: 100 }, (_, k) => (k % 2 === 0 ? mine : theirs).next()));
    expect(new Set(numbers).size).toBe(100);
    const block = await mine.next(1000);
    expect(await theirs.next()).toBe(block + 1000n);
    await owner.close();
    const again = await start();
    expect(await (await again.one.sequencer('ids')).next()).toBeGreaterThan(block + 1000n);
  });

  it('begins where its owner says', async () => {
    const { one } = await start({ firstNumber: 0 });
    expect(await (await one.sequencer('ids')).next()).toBe(0n);
  });
});

describe('a lock', () => {
  it('is handed over, with greater tokens', async () => {
    const { one, other } = await start();
    const [mine, theirs] = [await one.lock('leader'), await other.lock('leader')];
    const lease = await mine.acquire();
    const order: string[] = [];
    const waiting = theirs.acquire().then((next) => {
      order.push('next');
      return next;
    });
    expect(await theirs.tryAcquire()).toBeUndefined();
    order.push('release');
    expect(await lease.release()).toBe(true);
    const next = await waiting;
    expect(order).toEqual(['release', 'next']);
    expect(next.token).toBe(lease.token + 1n);
    expect([lease.isHeld, next.isHeld, next.signal.aborted]).toEqual([false, true, false]);
    await next[Symbol.asyncDispose]();
    expect(await mine.run(async ({ token }) => token)).toBe(next.token + 1n);
  });

  it('of a client that has gone is taken over at the end of its lease', async () => {
    const { one, other } = await start();
    const [mine, theirs] = [await one.lock('leader', { leaseMs: 50 }), await other.lock('leader')];
    expect(theirs.leaseMs).toBe(50);
    const lease = await mine.acquire();
    await one.close();
    const next = await theirs.acquire();
    expect(next.token).toBe(lease.token + 1n);
    expect(lease.isHeld).toBe(false);
    await next.release();
  });

  it('of a restarted owner is free one lease later', async () => {
    const { one } = await start({ isRestart: true });
    const lock = await one.lock('leader', { leaseMs: 20 });
    expect(await lock.tryAcquire()).toBeUndefined();
    await (await lock.acquire()).release();
    expect(await (await lock.tryAcquire())?.release()).toBe(true);
  });

  it('is not waited for after an abort or a time limit', async () => {
    const { one, other } = await start();
    const [mine, theirs] = [await one.lock('leader'), await other.lock('leader')];
    const lease = await mine.acquire();
    await expect(theirs.acquire({ timeoutMs: 5 })).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
    const stop = new AbortController();
    const waiting = theirs.acquire({ signal: stop.signal });
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'ERR_ROCE_ABORTED' });
    await lease.release();
    expect(await (await mine.acquire()).release()).toBe(true); // Nobody keeps it behind the caller's back.
  });
});

describe('a semaphore', () => {
  it('has so many leases at a time', async () => {
    const { one, other } = await start();
    const [mine, theirs] = [await one.semaphore('jobs', { permits: 3 }), await other.semaphore('jobs')];
    expect(theirs.permits).toBe(3);
    let [running, most] = [0, 0];
    const job = async () => {
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      running--;
    };
    await Promise.all(Array.from({ length: 20 }, (_, k) => (k % 2 === 0 ? mine : theirs).run(job)));
    expect(most).toBeLessThanOrEqual(3);
    const leases = [await mine.acquire(), await mine.acquire(), await theirs.acquire()];
    await expect(theirs.acquire({ timeoutMs: 5 })).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
    for (const lease of leases) expect(await lease.release()).toBe(true);
  });
});

describe('a barrier', () => {
  it('lets nobody go on before all are there', async () => {
    const { one, other } = await start();
    const [mine, theirs] = [await one.barrier('start', { parties: 2 }), await other.barrier('start')];
    for (const round of [0n, 1n]) {
      let isPassed = false;
      const first = mine.wait().finally(() => {
        isPassed = true;
      });
      await (await other.counter('x')).get();
      expect(isPassed).toBe(false);
      expect(await Promise.all([first, theirs.wait()])).toEqual([round, round]);
    }
    await expect(mine.wait({ timeoutMs: 5 })).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
  });
});

describe('a ring', () => {
  it('brings messages of all clients to the owner', async () => {
    const { owner, one, other } = await start();
    const jobs = owner.ring('jobs', { slots: 8, bytes: 100 });
    const [mine, theirs] = [await one.ring('jobs'), await other.ring('jobs')];
    expect(mine.bytes).toBe(100);
    const pushing = Promise.all(
      Array.from({ length: 40 }, (_, k) => (k % 2 === 0 ? mine : theirs).push(Buffer.from([k]))),
    );
    const taken: number[] = [];
    for await (const [job] of jobs) if (taken.push(job) === 40) break;
    await pushing;
    expect(taken.sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, k) => k));
    expect(jobs.skipped).toBe(0);
  });

  it('is made by its owner alone, and once', async () => {
    const { owner, one } = await start();
    await expect(one.ring('jobs')).rejects.toMatchObject({ code: 'ERR_ROCE_NOT_FOUND' });
    const jobs = owner.ring('jobs');
    expect(() => owner.ring('jobs')).toThrow('already');
    expect(() => owner.ring('more', { slots: 200 })).toThrow('slots is 200');
    expect(() => owner.ring('more', { bytes: 65_536, slots: 128 })).toThrow('no room');
    const waiting = expect(jobs.next()).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
    await owner.close();
    await waiting;
  });
});

describe('bad input', () => {
  it('is refused by name, and harms nothing', async () => {
    const { owner, one, other } = await start({ words: 2 });
    await expect(one.lock('x', { leaseMs: 5 })).rejects.toThrow('leaseMs is 5');
    await expect(one.lock('x', { leasMs: 50 } as object)).rejects.toThrow("did you mean 'leaseMs'");
    await expect(one.counter('')).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
    await expect(one.counter(5 as unknown as string)).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_ARGUMENT' });
    await expect(one.semaphore('x')).rejects.toThrow('the first user of it gives permits');
    await expect(one.semaphore('x', { permits: 3 })).rejects.toMatchObject({ code: 'ERR_ROCE_LIMIT' });
    const sequencer = await one.sequencer('x');
    await expect(sequencer.next(0)).rejects.toThrow('count is 0');
    await one.lock('x', { leaseMs: 50 });
    await expect(other.lock('x', { leaseMs: 60 })).rejects.toMatchObject({ code: 'ERR_ROCE_MISMATCH' });
    const counter = await one.counter('full').catch((error: { code: string }) => error.code);
    expect(counter).toBe('ERR_ROCE_LIMIT');
    expect(owner.names).toBe(2);
  });

  it('to servePrimitives and openPrimitives is refused by name', async () => {
    const here = await device();
    const bad = (options: object) => servePrimitives({ device: here, port: 0, ...options });
    await expect(bad({ word: 5 })).rejects.toThrow("did you mean 'words'");
    await expect(bad({ words: 0 })).rejects.toThrow('words is 0');
    await expect(bad({ firstNumber: 1.5 })).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
    await expect(bad({ isRestart: 1 })).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_ARGUMENT' });
    const nobody = openPrimitives({ device: here, host: ADDRESS, port: 1 });
    await expect(nobody).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
  });

  it('a peer that has no primitives is told apart', async () => {
    const listener = await listen(await device(), { port: 0 });
    const opened = openPrimitives({ device: await device(), host: ADDRESS, port: listener.port });
    const refused = expect(opened).rejects.toMatchObject({ code: 'ERR_ROCE_MISMATCH' });
    const peer = await listener.accept();
    await peer.send(Buffer.from('hello')).catch(() => {}); // The other side may end before it has acknowledged.
    await refused;
  });
});

describe('the end', () => {
  it('of the owner ends leases and calls', async () => {
    const { owner, one } = await start();
    const lock = await one.lock('leader');
    const lease = await lock.acquire();
    const lost = new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
    await owner.close();
    await lost;
    expect(lease.signal.reason).toMatchObject({ code: 'ERR_ROCE_FENCED' });
    await expect(lock.acquire()).rejects.toBeInstanceOf(Error);
    expect(await lease.release()).toBe(false);
  });
});
