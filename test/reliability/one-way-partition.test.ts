/**
 * One direction of a connection goes dark, for a while or for good. Either both ends go on, or both end; what a sender was told is done is with the
 * receiver; and nobody waits for ever. RDMA CM in virtual time, where connection management and data go the same dark way.
 */

import { describe, expect, it } from 'vitest';
import type { CmConnection } from '../../src/cm/cm-connection.js';
import { randomInt, SeededRandom } from '../../src/core/random.js';
import { type Side, TwoManagers } from '../cm/two-managers.js';
import { createPair } from '../support/pair.js';
import { lay } from './unruly-wire.js';

const SECOND = 1e9;
const FLIGHT_NS = 10_000;
/** Eight timeouts of 0.54 s, as RDMA CM agrees on them. */
const DETECTION_NS = 8 * 4096 * 2 ** 17;
/** DREQ is sent sixteen times, 4.8 s apart. */
const GIVES_UP_NS = 16 * 4.9 * SECOND;

type Direction = 'a>b' | 'b>a';

interface World {
  readonly world: TwoManagers;
  readonly a: CmConnection;
  readonly b: CmConnection;
  /** The direction that is dark now. */
  dark: Direction | undefined;
}

async function connected(): Promise<World> {
  const world = await TwoManagers.create();
  const { active, passive } = await world.connectOne();
  const result: World = { world, a: active, b: passive, dark: undefined };
  const wire = (from: Side, to: Side, direction: Direction) =>
    lay(from.host, world.events, 10e9, () => (result.dark === direction ? [] : [{ to: to.host, afterNs: FLIGHT_NS }]));
  wire(world.a, world.b, 'a>b');
  wire(world.b, world.a, 'b>a');
  return result;
}

/** As a program would: sends 16 bytes, and disconnects if that fails. */
async function send(side: Side, connection: CmConnection): Promise<string> {
  connection.qp.postSend({ opcode: 'SEND', sges: [side.mr.sge(0, 16)] });
  for (;;) {
    const { opcode, status, statusName } = await side.cq.next();
    if (status === 0 && opcode === 'RECV') continue; // The other end's message, in the same queue.
    if (status !== 0) void connection.disconnect();
    return statusName;
  }
}

function receives({ qp }: CmConnection, side: Side): void {
  for (let i = 0; i < 2; i++) qp.postRecv({ sges: [side.mr.sge(1024, 16)] });
}

/** When the connection ended at this end, from now on; undefined while it has not. */
function ending(world: TwoManagers, connection: CmConnection): { atNs: number | undefined } {
  const startNs = world.events.nowNs;
  const end: { atNs: number | undefined } = { atNs: undefined };
  void connection.disconnected.then(() => {
    end.atNs = world.events.nowNs - startNs;
  });
  return end;
}

describe.each(['a>b', 'b>a'] as const)('%s dark', (dark) => {
  it('for 3 s, less than the retries last: what is sent arrives, and both ends go on', async () => {
    const end = await connected();
    const { world, a, b } = end;
    receives(b, world.b);
    end.dark = dark;
    const sent = send(world.a, a);
    await world.pass(3 * SECOND);
    end.dark = undefined;
    expect(await world.until(sent)).toBe('SUCCESS');
    expect(await world.until(world.b.cq.next())).toMatchObject({ statusName: 'SUCCESS', byteLen: 16 });
    expect([(await a.qp.query()).state, (await b.qp.query()).state]).toEqual(['RTS', 'RTS']);
  });

  it('for 20 s, longer than the retries last: the sender learns of it in 5 s, and both ends end', async () => {
    const end = await connected();
    const { world, a, b } = end;
    receives(b, world.b);
    const ends = [ending(world, a), ending(world, b)];
    end.dark = dark;
    const startNs = world.events.nowNs;
    expect(await world.until(send(world.a, a))).toBe('RETRY_EXC_ERR');
    expect(world.events.nowNs - startNs).toBeLessThan(1.1 * DETECTION_NS);
    await world.pass(20 * SECOND - (world.events.nowNs - startNs));
    end.dark = undefined;
    await world.until(Promise.all([a.disconnected, b.disconnected]));
    console.log(`${dark} dark for 20 s: a ended after ${seconds(ends[0])} s, b after ${seconds(ends[1])} s`);
    expect([a.qp.state, b.qp.state]).toEqual(['ERR', 'ERR']);
    for (const { atNs } of ends) expect(atNs).toBeLessThan(26 * SECOND);
  });

  it('for good: both ends end in bounded time, if each of them sends', async () => {
    const end = await connected();
    const { world, a, b } = end;
    receives(a, world.a);
    receives(b, world.b);
    const ends = [ending(world, a), ending(world, b)];
    end.dark = dark;
    const statuses = await world.until(Promise.all([send(world.a, a), send(world.b, b)]));
    expect(statuses).not.toContain('SUCCESS');
    await world.until(Promise.all([a.disconnected, b.disconnected]));
    console.log(`${dark} dark for good: a ended after ${seconds(ends[0])} s, b after ${seconds(ends[1])} s`);
    expect([a.qp.state, b.qp.state]).toEqual(['ERR', 'ERR']);
    for (const { atNs } of ends) expect(atNs).toBeLessThan(DETECTION_NS + GIVES_UP_NS);
  });
});

it('a dark for good towards an end that never sends: that end learns of it when it sends', async () => {
  const end = await connected();
  const { world, a, b } = end;
  receives(b, world.b);
  const idle = ending(world, b);
  end.dark = 'a>b';
  expect(await world.until(send(world.a, a))).toBe('RETRY_EXC_ERR');
  await world.until(a.disconnected);
  expect(idle.atNs).toBeUndefined();
  const startNs = world.events.nowNs;
  expect(await world.until(send(world.b, b))).toBe('RETRY_EXC_ERR');
  expect(world.events.nowNs - startNs).toBeLessThan(1.1 * DETECTION_NS);
});

function seconds({ atNs }: { atNs: number | undefined }): string {
  return ((atNs ?? Number.NaN) / SECOND).toFixed(1);
}

describe('darkness at random times, in random directions', () => {
  const MESSAGES = 40;
  const BYTES = 3000;
  const SEEDS = 60;

  it.each(['go-back-n', 'selective-repeat'] as const)(
    '%s: what completed at the sender is with the receiver, once and in order, and no more than was sent',
    async (recovery) => {
      const outcomes = { whole: 0, broken: 0 };
      for (let seed = 1; seed <= SEEDS; seed++) {
        const random = new SeededRandom(seed).stream('darkness');
        const attr = { timeout: 6, retryCnt: 3 }; // Four timeouts of 262 us.
        const { a, b, events } = await createPair({ seed, recovery, attrA: attr, attrB: attr });
        const dark = { 'a>b': [0, 0], 'b>a': [0, 0] };
        for (const direction of ['a>b', 'b>a'] as const) {
          const from = randomInt(random, 0, 150_000);
          dark[direction] = randomInt(random, 0, 2) === 0 ? [0, 0] : [from, from + randomInt(random, 0, 3_000_000)];
        }
        const passes = (direction: Direction, nowNs: number) =>
          nowNs < dark[direction][0] || nowNs >= dark[direction][1];
        lay(a.host, events, 10e9, (_, now) => (passes('a>b', now) ? [{ to: b.host, afterNs: 2000 }] : []));
        lay(b.host, events, 10e9, (_, now) => (passes('b>a', now) ? [{ to: a.host, afterNs: 2000 }] : []));
        for (let k = 0; k < MESSAGES; k++) {
          b.qp.postRecv({ wrId: k, sges: [b.mr.sge(k * BYTES, BYTES)] });
          a.mr.bytes.fill(k + 1, k * BYTES, (k + 1) * BYTES);
          a.qp.postSend({ opcode: 'SEND', wrId: k, sges: [a.mr.sge(k * BYTES, BYTES)] });
        }
        events.run({ eventsMax: 1_000_000 });
        expect(events.nextNs).toBe(Number.POSITIVE_INFINITY);
        const sent = a.cq.poll(1024).map(({ statusName }) => statusName);
        const done = sent.filter((status) => status === 'SUCCESS').length;
        const received = b.recvCq.poll(1024).map(({ wrId, statusName }) => `${wrId} ${statusName}`);
        expect(sent).toHaveLength(MESSAGES);
        expect(received).toEqual(Array.from({ length: received.length }, (_, k) => `${k} SUCCESS`));
        expect(received.length).toBeGreaterThanOrEqual(done);
        const arrived = b.mr.bytes.subarray(0, received.length * BYTES);
        expect(arrived.equals(a.mr.bytes.subarray(0, arrived.length))).toBe(true);
        if (done === MESSAGES) outcomes.whole++;
        else {
          outcomes.broken++;
          expect(sent.slice(done)).toEqual(['RETRY_EXC_ERR', ...Array(MESSAGES - done - 1).fill('WR_FLUSH_ERR')]);
        }
      }
      console.log(`${recovery}: ${outcomes.whole} connections went on, ${outcomes.broken} ended`);
      expect(Math.min(outcomes.whole, outcomes.broken)).toBeGreaterThan(5); // Both happen.
    },
  );
});
