/** Locks and semaphores in virtual time: who holds them, under deaths and standstills at every step and clocks that run apart. */

import { describe, expect, it } from 'vitest';
import { randomInt, randomUnit, SeededRandom } from '../../../src/core/random.js';
import type { Lease, LeasePlace } from '../src/lease.js';
import { freeWord, heldWord, isHeld, nextBeat, tokenOf } from '../src/lease-word.js';
import { RemoteLock } from '../src/lock.js';
import { RemoteSemaphore } from '../src/semaphore.js';
import { type SimulatedClient, SimulatedOwner } from './simulated.js';

const LEASE_NS = 20e6;
const CLIENTS = 4;
const TURNS = 6;

function placeOf(words: SimulatedClient, leaseNs = LEASE_NS): LeasePlace {
  return { words, offset: 0, leaseNs, title: "lock 'x'" };
}

interface Course {
  readonly seed: number;
  /** Permits; 1: a lock. */
  readonly permits?: number;
  /** How much faster or slower clocks run at most. */
  readonly drift?: number;
  /** How long one client thinks that the lease is, against what the others think. */
  readonly trustFactor?: number;
  /** Clients that stand still now and then, for up to this many leases. */
  readonly standstillLeases?: number;
  /** Clients die with this probability in each turn. */
  readonly deaths?: number;
  /** Timers fire early, late and together. */
  readonly isUnpunctual?: boolean;
}

interface Verdict {
  /** Moments at which more held it than may. */
  overlaps: number;
  acquired: number;
  lost: number;
  takenOver: number;
  died: number;
}

/** Clients take turns at a lock or semaphore, do something under it for a while, and give it back. */
async function takeTurns(course: Course): Promise<Verdict> {
  const { seed, permits = 1, drift = 0.004, trustFactor = 1, standstillLeases = 0, deaths = 0 } = course;
  const owner = new SimulatedOwner({ seed });
  const { random } = owner;
  const leases: { readonly lease: Lease; readonly client: SimulatedClient }[] = [];
  const verdict: Verdict = { overlaps: 0, acquired: 0, lost: 0, takenOver: 0, died: 0 };
  const check = () => {
    const holders = leases.filter(({ lease, client }) => !client.isDead && lease.isHeld);
    if (holders.length > permits) verdict.overlaps++;
  };
  const client = async (name: string) => {
    const rate = 1 + (2 * randomUnit(random) - 1) * drift;
    const words = owner.client(name, rate);
    if (course.isUnpunctual === true) words.fireUnpunctually(new SeededRandom(seed).stream(`timers of ${name}`));
    if (randomUnit(random) < deaths) {
      words.diesAt = randomInt(random, 0, 40);
      words.isLastExecuted = randomUnit(random) < 0.5;
    }
    const place = placeOf(words, name === 'c0' ? LEASE_NS * trustFactor : LEASE_NS);
    const lock = permits === 1 ? new RemoteLock(place) : new RemoteSemaphore(place, permits);
    for (let turn = 0; turn < TURNS; turn++) {
      const lease = await lock.acquire();
      leases.push({ lease, client: words });
      verdict.acquired++;
      check();
      for (let step = randomInt(random, 0, 4); step > 0 && lease.isHeld; step--) {
        if (randomUnit(random) < 0.2) words.standStill(randomUnit(random) * standstillLeases * LEASE_NS);
        await words.sleep(randomInt(random, 1, LEASE_NS / 2));
        check();
      }
      if (lease.signal.aborted) verdict.lost++;
      await lease.release();
      await words.sleep(randomInt(random, 1, LEASE_NS / 2));
    }
  };
  const names = Array.from({ length: CLIENTS }, (_, k) => `c${k}`);
  // One that dies never settles: the others have to.
  const running = names.map((name) => client(name));
  const dead = async (k: number) => {
    while (!owner.clients[k].isDead) await owner.sleep(LEASE_NS);
  };
  await owner.until(Promise.all(running.map((run, k) => Promise.race([run, dead(k)]))));
  verdict.died = owner.clients.filter(({ isDead }) => isDead).length;
  // Tokens only rise, and every holder has one of its own.
  const last = new Map<number, bigint>();
  for (const { offset, before, after } of owner.changes) {
    if (isHeld(after) && tokenOf(after) !== tokenOf(before)) {
      expect(tokenOf(after)).toBe((last.get(offset) ?? 0n) + 1n);
      last.set(offset, tokenOf(after));
      if (isHeld(before)) verdict.takenOver++;
    } else expect(tokenOf(after)).toBe(tokenOf(before));
  }
  if (permits === 1) {
    const tokens = leases.map(({ lease }) => lease.token);
    expect(new Set(tokens).size).toBe(tokens.length);
  }
  return verdict;
}

async function sumOf(seeds: number, course: Omit<Course, 'seed'>): Promise<Verdict> {
  const sum: Verdict = { overlaps: 0, acquired: 0, lost: 0, takenOver: 0, died: 0 };
  for (let seed = 1; seed <= seeds; seed++) {
    const verdict = await takeTurns({ seed, ...course });
    for (const name of Object.keys(sum) as (keyof Verdict)[]) sum[name] += verdict[name];
  }
  return sum;
}

describe('the word of a lock', () => {
  it('has room for the token, whatever the beat', () => {
    let word = heldWord(2n ** 52n);
    const first = word;
    for (let k = 1; k < 1024; k++) {
      word = nextBeat(word);
      expect(word).not.toBe(first);
      expect([tokenOf(word), isHeld(word)]).toEqual([2n ** 52n, true]);
    }
    expect(nextBeat(word)).toBe(first);
    expect(isHeld(freeWord(7n))).toBe(false);
    expect(word).toBeLessThan(2n ** 64n);
  });
});

describe.each([1, 3])('%d permits', (permits) => {
  it('have no more holders than that, and everybody has its turn', async () => {
    const sum = await sumOf(10, { permits });
    expect(sum).toMatchObject({ overlaps: 0, lost: 0, takenOver: 0, acquired: 10 * CLIENTS * TURNS });
  });

  it('have no more holders where timers fire early, late and together, and no lease ends early', async () => {
    const sum = await sumOf(5, { permits, isUnpunctual: true });
    expect(sum).toMatchObject({ overlaps: 0, lost: 0, takenOver: 0, acquired: 5 * CLIENTS * TURNS });
    const stalled = await sumOf(5, { permits, isUnpunctual: true, standstillLeases: 4, deaths: 0.5 });
    expect(stalled.overlaps).toBe(0);
    expect(stalled.died).toBeGreaterThan(0);
  });

  it('come back from the dead, whatever they died at', async () => {
    const sum = await sumOf(25, { permits, deaths: 0.5 });
    expect(sum.overlaps).toBe(0);
    expect(sum.died).toBeGreaterThan(20);
    expect(sum.takenOver).toBeGreaterThan(permits === 1 ? 5 : 0); // A free permit is taken before that of a dead holder.
  });

  it('are lost by those who stand still, who know it when they go on', async () => {
    const sum = await sumOf(15, { permits, standstillLeases: 4 });
    expect(sum.overlaps).toBe(0);
    expect(sum.lost).toBeGreaterThan(5);
  });
});

describe('what the promise rests on', () => {
  it('is the same lease for all: where one trusts it for longer, two hold the lock', async () => {
    const sum = await sumOf(10, { trustFactor: 8 });
    expect(sum.overlaps).toBeGreaterThan(0);
  });

  it('is clocks that run alike: with others two hold the lock, and tokens still tell them apart', async () => {
    const sum = await sumOf(20, { drift: 0.6, standstillLeases: 3 });
    expect(sum.overlaps).toBeGreaterThan(0);
  });
});

describe('a holder', () => {
  async function pair(seed = 1) {
    const owner = new SimulatedOwner({ seed, delayNsMax: 10_000 });
    const [one, other] = [owner.client('one'), owner.client('other')];
    const locks = [new RemoteLock(placeOf(one)), new RemoteLock(placeOf(other))] as const;
    return { owner, one, other, locks };
  }

  it.each([true, false])(
    'that dies at any step leaves the lock to the next one (executed: %s)',
    async (isLastExecuted) => {
      for (let step = 0; step < 8; step++) {
        const { owner, one, locks } = await pair();
        one.diesAt = step;
        one.isLastExecuted = isLastExecuted;
        const dying = async () => {
          for (;;) {
            const lease = await locks[0].acquire();
            await one.sleep(1.2 * LEASE_NS); // Some renewals.
            await lease.release();
          }
        };
        void dying();
        await owner.until(owner.sleep(10 * LEASE_NS));
        expect(one.isDead).toBe(true);
        const startNs = owner.events.nowNs;
        const lease = await owner.until(locks[1].acquire());
        expect(lease.isHeld).toBe(true);
        expect(owner.events.nowNs - startNs).toBeLessThan(1.3 * LEASE_NS + 20e6);
        expect(await owner.until(lease.release())).toBe(true);
      }
    },
  );

  it('keeps the lock for a hundred leases while it runs', async () => {
    const { owner, locks } = await pair();
    const lease = await owner.until(locks[0].acquire());
    const late = locks[1].acquire();
    await owner.until(owner.sleep(100 * LEASE_NS));
    expect(lease.isHeld).toBe(true);
    expect(lease.signal.aborted).toBe(false);
    expect(await owner.until(lease.release())).toBe(true);
    expect((await owner.until(late)).token).toBe(lease.token + 1n);
  });

  it('hands the lock over in three round trips at most, whenever it releases it', async () => {
    let most = 0;
    for (let seed = 1; seed <= 50; seed++) {
      const { owner, one, other, locks } = await pair(seed);
      const lease = await owner.until(locks[0].acquire());
      const late = locks[1].acquire();
      await owner.until(owner.sleep((seed / 50) * LEASE_NS));
      const posted = one.posted + other.posted;
      const released = lease.release();
      const next = await owner.until(late);
      await owner.until(released);
      expect(next.token).toBe(lease.token + 1n);
      most = Math.max(most, one.posted + other.posted - posted);
      await owner.until(next.release());
    }
    // The release, and an attempt that was posted before it or after it, or both.
    expect(most).toBeLessThanOrEqual(3);
    expect(most).toBeGreaterThanOrEqual(2);
  });

  it('that stood still is not the holder any more, knows it at once, and its token is smaller', async () => {
    const { owner, one, locks } = await pair();
    const lease = await owner.until(locks[0].acquire());
    const waiting = locks[1].acquire();
    one.standStill(3 * LEASE_NS);
    const next = await owner.until(waiting);
    expect(lease.isHeld).toBe(false); // By its own clock, before it has heard of anything.
    expect(next.isHeld).toBe(true);
    expect(next.token).toBeGreaterThan(lease.token);
    await owner.until(one.sleep(0));
    await owner.until(owner.sleep(LEASE_NS));
    expect(lease.signal.reason).toMatchObject({ code: 'ERR_ROCE_FENCED' });
    expect(await owner.until(lease.release())).toBe(false);
    expect(next.isHeld).toBe(true); // The release of the old one has done nothing.
    await owner.until(next.release());
  });

  it('without the token writes over the next one: what fencing is for', async () => {
    for (const isFenced of [true, false]) {
      const { owner, one, other, locks } = await pair();
      const written: string[] = [];
      let highest = 0n;
      const write = (what: string, token: bigint) => {
        if (isFenced && token < highest) return;
        highest = token;
        written.push(what);
      };
      const lease = await owner.until(locks[0].acquire());
      one.standStill(3 * LEASE_NS);
      // It does not look at `isHeld`.
      const careless = one.sleep(1).then(() => write('old', lease.token));
      const next = await owner.until(locks[1].acquire());
      await owner.until(other.sleep(1));
      write('new', next.token);
      await owner.until(careless);
      expect(written).toEqual(isFenced ? ['new'] : ['new', 'old']);
      await owner.until(next.release());
    }
  });

  it('gives back a lease that could not be renewed in time, so that nobody waits for its end', async () => {
    const { owner, one, locks } = await pair();
    const lease = await owner.until(locks[0].acquire());
    one.standStill(2 * LEASE_NS);
    await owner.until(one.sleep(0));
    await owner.until(owner.sleep(LEASE_NS / 10));
    expect(lease.signal.aborted).toBe(true);
    expect(isHeld(owner.words[0])).toBe(false);
    expect(await owner.until(lease.release())).toBe(true); // Nobody else has had it.
  });
});

describe('who waits', () => {
  it('gives up when asked to, and gives back what comes too late', async () => {
    for (let step = 0; step < 30; step++) {
      const owner = new SimulatedOwner({ seed: step, delayNsMax: 10_000 });
      const lock = new RemoteLock(placeOf(owner.client('one')));
      const stop = new AbortController();
      const acquired = lock.acquire({ signal: stop.signal }).then(
        (lease) => lease,
        (error: { code: string; released: Promise<void> }) => error,
      );
      await owner.until(owner.sleep(step * 1000));
      stop.abort();
      const outcome = await owner.until(acquired);
      if ('code' in outcome) {
        expect(outcome.code).toBe('ERR_ROCE_ABORTED');
        await owner.until(outcome.released);
      } else await owner.until(outcome.release());
      expect(isHeld(owner.words[0])).toBe(false);
    }
  });

  it('has a time limit', async () => {
    const owner = new SimulatedOwner({ seed: 1 });
    const lease = await owner.until(new RemoteLock(placeOf(owner.client('one'))).acquire());
    const other = new RemoteLock(placeOf(owner.client('other')));
    await expect(owner.until(other.acquire({ timeoutMs: 5 }))).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
    expect(await owner.until(other.tryAcquire())).toBeUndefined();
    await owner.until(lease.release());
    expect((await owner.until(other.tryAcquire()))?.isHeld).toBe(true);
  });

  it('and who holds hear of the death of the owner', async () => {
    const owner = new SimulatedOwner({ seed: 1 });
    const lease = await owner.until(new RemoteLock(placeOf(owner.client('one'))).acquire());
    const other = new RemoteLock(placeOf(owner.client('other')));
    const waiting = owner.until(other.acquire());
    const refused = expect(waiting).rejects.toMatchObject({ code: 'ERR_ROCE_COMPLETION' });
    await owner.until(owner.sleep(2 * LEASE_NS)).catch(() => {});
    owner.die();
    expect(lease.isHeld).toBe(false);
    expect(lease.signal.reason).toMatchObject({ code: 'ERR_ROCE_FENCED' });
    await refused;
    expect(await owner.until(lease.release())).toBe(false);
  });
});

describe('run', () => {
  it('gives the lock back when its work is done, and when it has failed', async () => {
    const owner = new SimulatedOwner({ seed: 1 });
    const lock = new RemoteLock(placeOf(owner.client('one')));
    expect(await owner.until(lock.run(async ({ token }) => token))).toBe(1n);
    const failing = lock.run(async () => {
      throw new Error('no');
    });
    await expect(owner.until(failing)).rejects.toThrow('no');
    expect(isHeld(owner.words[0])).toBe(false);
  });
});
