/** Who goes next, and what a client can keep from others: in virtual time. */

import { expect, test } from 'vitest';
import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { virtualClock } from '../../packages/lab/src/sim/virtual-clock.js';
import { type FairClient, FairQueue, type FairQueueOptions } from '../../src/core/fair-queue.js';
import { SeededRandom } from '../../src/core/random.js';
import { RateLimit } from '../../src/storage-rpc/fair/rate-limit.js';
import { runToRest } from '../support/virtual-time.js';

const KIB = 1024;
const MIB = 1024 * KIB;
const SECOND = 1e9;

function rig(options: Partial<FairQueueOptions> = {}) {
  const events = new EventQueue();
  const clock = virtualClock(events);
  const queue = new FairQueue({ clock, requestsMax: 1000, bytesMax: 16 * MIB, shareBytes: MIB, ...options });
  return { events, clock, queue };
}

/** Lets time pass until then. */
function advance(events: EventQueue, untilNs: number): void {
  events.at(untilNs, () => {});
  runToRest(events, { untilNs });
}

/** Asks, and says when it was granted. */
function ask(client: FairClient, bytes: number, limit?: RateLimit): { granted: boolean } {
  const outcome = { granted: false };
  client.ask(
    bytes,
    () => {
      outcome.granted = true;
    },
    limit,
  );
  return outcome;
}

test('whoever holds nothing is served beside clients that keep all of the pool', () => {
  const { queue } = rig();
  const hogs = Array.from({ length: 63 }, () => queue.join());
  const asks = hogs.map((hog) => [ask(hog, MIB), ask(hog, 32 * MIB)]);
  expect(asks.every(([share]) => share.granted)).toBe(true);
  expect(asks.filter(([, pool]) => pool.granted).length).toBe(1); // One that is longer than the pool, alone.
  expect(ask(queue.join(), 512).granted).toBe(true);
  expect(queue.heldBytes).toBeLessThanOrEqual(63 * MIB + 32 * MIB + 512);
});

test('held memory is bounded whatever clients ask for, and comes back', () => {
  const { queue } = rig();
  const random = new SeededRandom(7).stream('asks');
  const clients = Array.from({ length: 20 }, () => queue.join());
  const held: Array<readonly [FairClient, number]> = [];
  let most = 0;
  for (let step = 0; step < 20_000; step++) {
    const client = clients[random.u32() % clients.length];
    if (random.u32() % 2 === 0) {
      const bytes = random.u32() % (2 * MIB);
      client.ask(bytes, () => held.push([client, bytes]));
    } else {
      const [one] = held.splice(random.u32() % Math.max(1, held.length), 1);
      if (one === undefined) continue;
      one[0].done();
      one[0].give(one[1]);
    }
    most = Math.max(most, queue.heldBytes);
  }
  expect(most).toBeLessThanOrEqual(16 * MIB + 20 * MIB);
  for (;;) {
    const one = held.shift();
    if (one === undefined) break;
    one[0].done();
    one[0].give(one[1]);
  }
  expect(queue.heldBytes).toBe(0);
  expect(queue.waiting).toBe(0);
});

test('clients get as many bytes as each other, whatever the length of their requests', () => {
  const { queue } = rig({ requestsMax: 4, shareBytes: 64 * MIB });
  const served = new Map<FairClient, number>();
  const running: Array<readonly [FairClient, number]> = [];
  const keepAsking = (client: FairClient, bytes: number) => {
    client.ask(bytes, () => {
      served.set(client, (served.get(client) ?? 0) + bytes);
      running.push([client, bytes]);
      keepAsking(client, bytes);
    });
  };
  const [small, middle, large] = [queue.join(), queue.join(), queue.join()];
  keepAsking(large, 8 * MIB);
  keepAsking(middle, 128 * KIB);
  keepAsking(small, 4 * KIB);
  for (let n = 0; n < 60_000; n++) {
    const [client, bytes] = running.shift()!;
    client.give(bytes);
    client.done();
  }
  const bytesOf = (client: FairClient) => served.get(client)! / served.get(large)!;
  expect(bytesOf(small)).toBeGreaterThan(0.8);
  expect(bytesOf(small)).toBeLessThan(1.25);
  expect(bytesOf(middle)).toBeGreaterThan(0.8);
  expect(bytesOf(middle)).toBeLessThan(1.25);
});

test('a request that is longer than what is free is not overtaken for ever', () => {
  const { queue } = rig({ shareBytes: 0 });
  const [short, long] = [queue.join(), queue.join()];
  for (let i = 0; i < 16; i++) ask(short, MIB);
  const waiting = ask(long, 16 * MIB);
  for (let i = 0; i < 16; i++) {
    expect(waiting.granted).toBe(false);
    ask(short, MIB);
    short.give(MIB);
    short.done();
  }
  expect(waiting.granted).toBe(true);
});

test('places are a bound of their own', () => {
  const { queue } = rig({ requestsMax: 2 });
  const client = queue.join();
  const asks = [1, 2, 3].map(() => ask(client, 512));
  expect(asks.map(({ granted }) => granted)).toEqual([true, true, false]);
  client.give(512); // Its answer is fetched; the place is what it waits for.
  expect(asks[2].granted).toBe(false);
  client.done();
  expect(asks[2].granted).toBe(true);
});

test('a client that is stuck with what others wait for is reported; one that only waits for its disk is not', () => {
  const { queue, events } = rig({ shareBytes: 0 });
  const reported: string[] = [];
  const join = (name: string, sinceNs: number) =>
    queue.join({ stuckSinceNs: () => sinceNs, onStuck: () => void reported.push(name) });
  const stuck = join('stuck', 0);
  const patient = join('patient', Number.POSITIVE_INFINITY);
  ask(stuck, 8 * MIB);
  ask(patient, 8 * MIB);
  advance(events, 100 * SECOND);
  expect(reported).toEqual([]); // Nobody waits.
  const other = queue.join();
  ask(other, MIB);
  advance(events, 109 * SECOND);
  expect(reported).toEqual([]);
  advance(events, 113 * SECOND);
  expect(reported[0]).toBe('stuck');
  expect(reported).not.toContain('patient');
});

test('a client that leaves asks for nothing any more and still gives back what it held', () => {
  const { queue } = rig({ shareBytes: 0 });
  const [gone, other] = [queue.join(), queue.join()];
  ask(gone, 16 * MIB);
  const never = ask(gone, MIB);
  const next = ask(other, MIB);
  gone.leave();
  gone.done();
  gone.give(16 * MIB);
  expect([never.granted, next.granted]).toEqual([false, true]);
  expect(queue.heldBytes).toBe(MIB);
});

test('a client that leaves when an earlier request is granted, while it asks for the next, is refused', async () => {
  const { queue, events } = rig();
  const limit = new RateLimit({ iops: 1 });
  const client = queue.join();
  let asked: Promise<unknown> | undefined;
  ask(client, 512, limit);
  // When the third may go, ahead of the timer.
  events.at(limit.readyNs + SECOND, () => {
    asked = client.take(512)?.catch((error: Error) => error);
  });
  ask(client, 512, limit);
  client.ask(512, () => client.leave(), limit);
  advance(events, 3 * SECOND);
  expect(await asked).toMatchObject({ code: 'ERR_ROCE_CLOSED' });
});

test('a limit of requests and one of bytes hold over all clients, and each has its part', () => {
  for (const [limit, bytes, perSecond] of [
    [new RateLimit({ iops: 100 }), 512, 100],
    [new RateLimit({ bytesPerSecond: 4 * MIB }), 64 * KIB, 64],
  ] as const) {
    const { queue, events } = rig();
    const served = [0, 0];
    served.forEach((_, i) => {
      const client = queue.join();
      const again = () => {
        client.ask(
          bytes,
          () => {
            served[i]++;
            client.done();
            client.give(bytes);
            again();
          },
          limit,
        );
      };
      again();
    });
    advance(events, 10 * SECOND);
    const total = served[0] + served[1];
    expect(total).toBeGreaterThan(9.9 * perSecond);
    expect(total).toBeLessThan(10.2 * perSecond);
    queue.close();
  }
});

test('a limit of one disk does not hold up requests to another', () => {
  const { queue } = rig();
  const limit = new RateLimit({ iops: 1 });
  const client = queue.join();
  expect(ask(client, 512, limit).granted).toBe(true);
  expect(ask(client, 512, limit).granted).toBe(false);
  expect(ask(queue.join(), 512).granted).toBe(true);
});
