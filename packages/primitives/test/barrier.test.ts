/** Barriers in virtual time: nobody goes on too early, nobody misses the end of a round. */

import { describe, expect, it } from 'vitest';
import { randomInt } from '../../../src/core/random.js';
import { RemoteBarrier } from '../src/barrier.js';
import { SimulatedOwner } from './simulated.js';

const PARTIES = 4;
const ROUNDS = 8;

describe('a barrier', () => {
  it('lets nobody go on before all have arrived, in every round', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const owner = new SimulatedOwner({ seed });
      const arrived = Array<number>(ROUNDS).fill(0);
      const party = async (name: string) => {
        const words = owner.client(name);
        const barrier = new RemoteBarrier(words, 0, PARTIES);
        for (let round = 0; round < ROUNDS; round++) {
          await words.sleep(randomInt(owner.random, 1, 2e6));
          arrived[round]++;
          expect(await barrier.wait()).toBe(BigInt(round));
          expect(arrived[round]).toBe(PARTIES);
        }
      };
      await owner.until(Promise.all(Array.from({ length: PARTIES }, (_, k) => party(`p${k}`))));
    }
  });

  it('of one party holds up nobody', async () => {
    const owner = new SimulatedOwner({ seed: 1 });
    const barrier = new RemoteBarrier(owner.client('one'), 0, 1);
    expect(await owner.until(barrier.wait())).toBe(0n);
    expect(await owner.until(barrier.wait())).toBe(1n);
  });

  it('does not count who has given up, at whatever moment', async () => {
    let [withdrawn, tooLate] = [0, 0];
    for (let seed = 1; seed <= 60; seed++) {
      const owner = new SimulatedOwner({ seed });
      const barriers = ['one', 'two', 'three'].map((name) => new RemoteBarrier(owner.client(name), 0, 2));
      const stop = new AbortController();
      const given = barriers[0].wait({ signal: stop.signal }).catch((error: { released: Promise<void> }) => error);
      const steady = barriers[1];
      const waiting = owner.sleep(randomInt(owner.random, 0, 4e5)).then(() => steady.wait());
      await owner.until(owner.sleep(randomInt(owner.random, 0, 8e5)));
      stop.abort();
      const error = await owner.until(given);
      if (typeof error !== 'bigint') await owner.until(error.released);
      await owner.until(owner.sleep(1e6));
      // Either the round is complete, for both, or the steady one waits for a third.
      if (owner.words[0] === 2n) tooLate++;
      else {
        expect(owner.words[0]).toBe(1n);
        withdrawn++;
        expect(await owner.until(barriers[2].wait())).toBe(0n);
      }
      expect(await owner.until(waiting)).toBe(0n);
    }
    expect(withdrawn).toBeGreaterThan(5);
    expect(tooLate).toBeGreaterThan(5);
  });

  it('taken back without a look at the round would leave somebody waiting: why it is a CMP_SWAP', async () => {
    const owner = new SimulatedOwner({ seed: 1, delayNsMax: 10 });
    const [slow, naive] = [owner.client('slow'), owner.client('naive')];
    const waiting = new RemoteBarrier(slow, 0, 2).wait({ timeoutMs: 100 });
    const late = expect(owner.until(waiting)).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
    slow.standStill(1e6);
    await owner.until(naive.fetchAdd(0, 1n)); // The round is complete.
    await owner.until(naive.fetchAdd(0, -1n)); // The slow one has not seen it.
    await late;
  });

  it('is stuck by a party that has died, and says so in time', async () => {
    const owner = new SimulatedOwner({ seed: 1 });
    const barrier = new RemoteBarrier(owner.client('one'), 0, 2);
    const stuck = owner.until(barrier.wait({ timeoutMs: 50 }));
    await expect(stuck).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
    await owner.until(owner.sleep(1e6));
    expect(owner.words[0]).toBe(0n);
  });
});
