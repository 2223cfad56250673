/** Rings in virtual time: what is pushed arrives once and in order, whoever dies or stands still at any step. */

import { describe, expect, it } from 'vitest';
import { randomInt, randomUnit } from '../../../src/core/random.js';
import { RemoteRing } from '../src/ring.js';
import { RingConsumer } from '../src/ring-consumer.js';
import { decodeMessage, encodeMessage, ringWords } from '../src/ring-layout.js';
import { type SimulatedClient, SimulatedOwner } from './simulated.js';

const SIZES = { slots: 4, bytes: 24 };
const DELAY_NS = 100_000;
const WRITE_TIMEOUT_NS = 50e6;

/** A ring, and when its consumer takes a producer for gone: `afterNs` after its death; below 0: at once. */
function ringOf(seed: number, afterNs = 2 * DELAY_NS, sizes = SIZES) {
  const owner = new SimulatedOwner({ seed, delayNsMax: DELAY_NS });
  const gone = new Set<number>();
  const expelled: number[] = [];
  const clients: SimulatedClient[] = [];
  const watch = async (client: SimulatedClient, producer: number) => {
    while (!client.isDead) await owner.sleep(1e5);
    if (afterNs > 0) await owner.sleep(afterNs);
    gone.add(producer);
  };
  const consumer = new RingConsumer({
    ...sizes,
    memory: Buffer.from(owner.words.buffer, 0, ringWords(sizes) * 8),
    clock: owner.client('consumer').clock,
    producers: {
      isThere: (producer) => !gone.has(producer),
      expel: (producer) => {
        expelled.push(producer);
        clients[producer - 1].isDead = true;
      },
    },
    writeTimeoutNs: WRITE_TIMEOUT_NS,
  });
  const producer = (name: string) => {
    const words = owner.client(name);
    const number = clients.push(words);
    void watch(words, number);
    const wake = async () => {
      await words.sleep(owner.delayNs());
      consumer.look();
    };
    return { words, ring: new RemoteRing({ words, offset: 0, producer: number, wake, ...sizes }) };
  };
  return { owner, consumer, producer, expelled };
}

interface Verdict {
  pushed: number;
  taken: number;
  missing: number;
  strange: number;
  skipped: number;
  died: number;
}

/** Producers push, the consumer takes, until everybody is done or dead. */
async function pushAndTake(
  seed: number,
  { deaths = 0, standstillNs = 0, afterNs = 2 * DELAY_NS } = {},
): Promise<Verdict> {
  const { owner, consumer, producer } = ringOf(seed, afterNs);
  const { random } = owner;
  const [pushed, taken] = [[] as string[], [] as string[]];
  const running = Array.from({ length: 4 }, (_, k) => {
    const { words, ring } = producer(`p${k}`);
    if (randomUnit(random) < deaths) {
      words.diesAt = randomInt(random, 0, 60);
      words.isLastExecuted = randomUnit(random) < 0.5;
    }
    const push = async () => {
      for (let n = 0; n < 12; n++) {
        if (randomUnit(random) < 0.1) words.standStill(randomUnit(random) * standstillNs);
        const text = `${k}:${n}`.padEnd(randomInt(random, 4, SIZES.bytes), '#');
        await ring.push(Buffer.from(text));
        pushed.push(text);
        await words.sleep(randomInt(random, 1, 1e6));
      }
    };
    const dead = async () => {
      while (!words.isDead) await owner.sleep(5e6);
    };
    return Promise.race([push(), dead()]);
  });
  let isOver = false;
  const taking = async () => {
    for (;;) {
      const message = await consumer.next({ timeoutMs: 300 }).catch(() => undefined);
      if (message !== undefined) taken.push(message.toString());
      else if (isOver) return;
      if (randomUnit(random) < 0.2) await owner.sleep(randomInt(random, 1, 3e6));
    }
  };
  const all = Promise.all(running).then(() => {
    isOver = true;
  });
  await owner.until(Promise.all([all, taking()]));
  const orderOf = (list: string[], k: number) => list.filter((text) => text.startsWith(`${k}:`));
  const seen = new Set(taken);
  let strange = taken.length - seen.size;
  for (let k = 0; k < 4; k++) {
    // Those that died may have got one message there without hearing of it.
    const numbers = orderOf(taken, k).map((text) => Number.parseInt(text.slice(2), 10));
    if (numbers.some((number, at) => at > 0 && number <= numbers[at - 1])) strange++;
  }
  strange += taken.filter((text) => !/^\d:\d+#*$/.test(text)).length;
  const missing = pushed.filter((text) => !seen.has(text)).length;
  const died = owner.clients.filter(({ isDead }) => isDead).length;
  return { pushed: pushed.length, taken: taken.length, missing, strange, skipped: consumer.skipped, died };
}

async function sumOf(seeds: number, course: Parameters<typeof pushAndTake>[1]): Promise<Verdict> {
  const sum: Verdict = { pushed: 0, taken: 0, missing: 0, strange: 0, skipped: 0, died: 0 };
  for (let seed = 1; seed <= seeds; seed++) {
    const verdict = await pushAndTake(seed, course);
    for (const name of Object.keys(sum) as (keyof Verdict)[]) sum[name] += verdict[name];
  }
  return sum;
}

describe('a ring', () => {
  it('gives every message once, those of each producer in order', async () => {
    const sum = await sumOf(6, {});
    expect(sum).toMatchObject({ pushed: 6 * 48, taken: 6 * 48, missing: 0, strange: 0, skipped: 0 });
  });

  it('goes on when producers die at any step, and loses nothing that was pushed', async () => {
    const sum = await sumOf(15, { deaths: 0.6 });
    expect(sum).toMatchObject({ missing: 0, strange: 0 });
    expect(sum.died).toBeGreaterThan(20);
    expect(sum.skipped).toBeGreaterThan(3);
  });

  it.each([
    ['keeps', 5e6],
    ['loses', -1],
  ])(
    '%s what others push if a slot is given away (after %d ns) on the death of its producer',
    async (outcome, afterNs) => {
      const { owner, consumer, producer } = ringOf(1, afterNs, { slots: 1, bytes: 24 });
      const [slow, next] = [producer('slow'), producer('next')];
      slow.words.lateNs = 3e6; // Its WRITE is still under way when it is dead.
      slow.words.diesAt = 1;
      void slow.ring.push(Buffer.from('slow'));
      while (!slow.words.isDead) await owner.until(owner.sleep(1e5));
      await owner.until(owner.sleep(2e5));
      const look = (timeoutMs: number) =>
        owner.until(consumer.next({ timeoutMs }).then(String, ({ code }: { code: string }) => code));
      expect(await look(0.01)).toBe('ERR_ROCE_TIMEOUT');
      const pushed = next.ring.push(Buffer.from('next'));
      await owner.until(Promise.race([pushed, owner.sleep(1e6)]));
      await owner.until(owner.sleep(5e6)); // The late WRITE has come.
      expect(await look(40)).toBe(outcome === 'keeps' ? 'next' : 'ERR_ROCE_TIMEOUT');
    },
  );

  it('expels producers that stand still while they write', async () => {
    const sum = await sumOf(8, { standstillNs: 3 * WRITE_TIMEOUT_NS });
    expect(sum).toMatchObject({ missing: 0, strange: 0 });
    expect(sum.skipped).toBeGreaterThan(0);
  });

  it('wakes a consumer that waits, and one that nobody wakes looks by itself', async () => {
    for (const isSilent of [false, true]) {
      const { owner, consumer, producer } = ringOf(1);
      const { ring, words } = producer('p');
      if (isSilent) words.diesAt = 7; // The last operation of the second push, which asks whether the consumer waits.
      const first = consumer.next();
      await owner.until(ring.push(Buffer.from('one')));
      const startNs = owner.events.nowNs;
      expect((await owner.until(first)).toString()).toBe('one');
      expect(owner.events.nowNs - startNs).toBeLessThan(4 * DELAY_NS);
      await owner.until(owner.sleep(30e6));
      const second = consumer.next();
      void ring.push(Buffer.from('two'));
      expect((await owner.until(second)).toString()).toBe('two');
      expect(words.isDead).toBe(isSilent);
    }
  });

  it('that is full makes producers wait, and keeps nothing of one that gives up', async () => {
    const { owner, consumer, producer } = ringOf(1);
    const { ring } = producer('p');
    for (let k = 0; k < SIZES.slots; k++) await owner.until(ring.push(Buffer.from(`${k}`)));
    await expect(owner.until(ring.push(Buffer.from('no'), { timeoutMs: 30 }))).rejects.toMatchObject({
      code: 'ERR_ROCE_TIMEOUT',
    });
    const waiting = ring.push(Buffer.from('4'));
    for (let k = 0; k <= SIZES.slots; k++) expect((await owner.until(consumer.next())).toString()).toBe(`${k}`);
    await owner.until(waiting);
    await expect(owner.until(consumer.next({ timeoutMs: 30 }))).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
  });

  it('of one slot works', async () => {
    const { owner, consumer, producer } = ringOf(1, 2 * DELAY_NS, { slots: 1, bytes: 8 });
    const rings = [producer('p').ring, producer('q').ring];
    const pushing = Promise.all(Array.from({ length: 20 }, (_, k) => rings[k % 2].push(Buffer.from([k]))));
    const taken: number[] = [];
    for (let k = 0; k < 20; k++) taken.push((await owner.until(consumer.next()))[0]);
    await owner.until(pushing);
    expect(taken.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, k) => k));
  });

  it('takes nothing that is too long', async () => {
    const { owner, producer } = ringOf(1);
    const { ring } = producer('p');
    await expect(owner.until(ring.push(Buffer.alloc(25)))).rejects.toThrow('longer than the 24');
    await expect(owner.until(ring.push('text' as unknown as Buffer))).rejects.toThrow('bytes');
    await owner.until(ring.push(Buffer.alloc(24)));
  });

  it('ends for those who wait', async () => {
    const { owner, consumer } = ringOf(1);
    const waiting = consumer.next();
    const messages: Buffer[] = [];
    const loop = (async () => {
      for await (const message of consumer) messages.push(message);
    })();
    consumer.close();
    await expect(owner.until(waiting)).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
    await owner.until(loop);
    expect(messages).toEqual([]);
  });
});

describe('a message', () => {
  const slot = (message: Buffer) => Buffer.concat([message, Buffer.alloc(40)]).subarray(0, 32);

  it('that has not come whole is not taken for one, nor is the one before it', () => {
    const [before, after] = [
      slot(encodeMessage(Buffer.from('the first'), 3n)),
      slot(encodeMessage(Buffer.from('and next'), 7n)),
    ];
    expect(decodeMessage(after, 7n)?.toString()).toBe('and next');
    for (let at = 0; at < 16; at++) {
      const torn = Buffer.concat([after.subarray(0, at), before.subarray(at)]);
      expect(decodeMessage(torn, 7n)).toBeUndefined();
    }
    expect(decodeMessage(Buffer.alloc(32), 0n)).toBeUndefined(); // Memory that nobody has written.
  });

  it('whose length is anything is not read beyond its slot', () => {
    const message = slot(encodeMessage(Buffer.from('x'), 0n));
    message.writeUInt32LE(0xffff_ffff, 0);
    expect(decodeMessage(message, 0n)).toBeUndefined();
  });
});
