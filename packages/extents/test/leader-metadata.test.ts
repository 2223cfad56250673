/** Transactions of a leader: their outcome where answers are lost, and that they end with its term. Who asks follows the lead. */

import { describe, expect, it } from 'vitest';
import { until } from '../../../test/support/virtual-time.js';
import { EventQueue } from '../../lab/src/sim/event-queue.js';
import { virtualClock } from '../../lab/src/sim/virtual-clock.js';
import { RpcError } from '../../rpc/src/rpc-error.js';
import { FollowingManager } from '../src/following-manager.js';
import { LEADER_KEY, LeaderMetadata } from '../src/leader-metadata.js';
import { MemoryMetadata } from '../src/memory-metadata.js';
import type { Metadata, Transaction } from '../src/metadata.js';
import { notLeader } from '../src/not-leader.js';

/** What becomes of the next transaction: done without an answer, or held back, also without one, and perhaps until the lease is over. */
type Fate = 'unheard' | 'held' | 'held too long' | undefined;

async function leading() {
  const events = new EventQueue();
  const clock = virtualClock(events);
  const store = new MemoryMetadata(clock);
  const term = await store.commit({ compare: [], put: [{ key: LEADER_KEY, value: 'me' }] });
  let fate: Fate;
  const held: Transaction[] = [];
  const unsure: Metadata = {
    get: (key) => store.get(key),
    list: (prefix) => store.list(prefix),
    renew: (...of) => store.renew(...of),
    watch: (...of) => store.watch(...of),
    close: () => store.close(),
    commit: async (transaction) => {
      const now = fate;
      fate = undefined;
      if (now === undefined) return store.commit(transaction);
      if (now === 'unheard') await store.commit(transaction);
      else held.push(transaction);
      isHeld = now !== 'held too long';
      throw new Error('no answer');
    },
  };
  let isHeld = true;
  const refusal = () => notLeader('me', undefined);
  const metadata = new LeaderMetadata({ store: unsure, clock, term, retryMs: 1, isHeld: () => isHeld, refusal });
  return {
    events,
    store,
    metadata,
    held,
    put: (value: string, version: number) =>
      until(events, metadata.commit({ compare: [{ key: 'a', version }], put: [{ key: 'a', value }] })),
    next: (of: Fate) => {
      fate = of;
    },
  };
}

describe('a transaction of a leader', () => {
  it('that was done and not heard of is found done', async () => {
    const { put, next, store } = await leading();
    next('unheard');
    const version = await put('1', 0);
    expect(version).toBeGreaterThan(0);
    expect((await store.get('a'))!.version).toBe(version);
  });

  it('that did not arrive is repeated, and does nothing when it arrives later', async () => {
    const { put, next, store, held } = await leading();
    next('held');
    const version = await put('1', 0);
    expect(version).toBeGreaterThan(0);
    expect(await put('2', version)).toBeGreaterThan(version);
    expect(await store.commit(held[0])).toBe(0);
    expect((await store.get('a'))!.value).toBe('2');
  });

  it('that was done and not heard of is not done again, although its versions would not hold', async () => {
    const { put, next, store } = await leading();
    const first = await put('1', 0);
    next('unheard');
    expect(await put('2', first)).toBeGreaterThan(first);
    expect((await store.get('a'))!.value).toBe('2');
  });

  it('says which version did not hold by 0, and goes on', async () => {
    const { put } = await leading();
    const version = await put('1', 0);
    expect(await put('2', 0)).toBe(0);
    expect(await put('2', version)).toBeGreaterThan(0);
  });

  it('changes nothing once another manager leads, and says so for ever', async () => {
    const { put, store } = await leading();
    await store.commit({ compare: [], put: [{ key: LEADER_KEY, value: 'other' }] });
    await expect(put('1', 0)).rejects.toMatchObject({ remoteCode: 'NOT_LEADER' });
    expect(await store.get('a')).toBeUndefined();
    await expect(put('1', 0)).rejects.toMatchObject({ remoteCode: 'NOT_LEADER' });
  });

  it('is neither done nor not done if the lease ends before that is known', async () => {
    const { put, next, store, held, metadata } = await leading();
    next('held too long');
    await expect(put('1', 0)).rejects.toMatchObject({ remoteCode: 'NOT_LEADER' });
    expect(metadata.isOver).toBe(true);
    // By the time of the next leader it has happened, or never will.
    await store.commit({ compare: [], put: [{ key: LEADER_KEY, value: 'other' }] });
    expect(await store.commit(held[0])).toBe(0);
  });
});

describe('a manager that does not answer', () => {
  /** `afterMs`: when it answers as the leader; undefined: never. A manager that refuses does so at once. */
  function cluster(managers: Record<string, { readonly afterMs?: number | undefined } | 'refuses'>, searchMs = 10) {
    const events = new EventQueue();
    const clock = virtualClock(events);
    const asked: string[] = [];
    const call = (address: string, method: string, timeoutMs: number) => {
      asked.push(`${address} ${method}`);
      const manager = managers[address];
      if (manager === 'refuses') return Promise.reject(notLeader(address, undefined));
      return new Promise((resolve, reject) => {
        const { afterMs = Number.POSITIVE_INFINITY } = manager;
        const late = () => reject(new Error('no answer in time'));
        clock.wakeAt(clock.nowNs() + timeoutMs * 1e6, late);
        if (afterMs < timeoutMs) clock.wakeAt(clock.nowNs() + afterMs * 1e6, () => resolve(address));
      });
    };
    const manager = new FollowingManager({
      addresses: Object.keys(managers),
      clock,
      retryMs: 5,
      searchMs,
      at: (address) => ({
        call: ((...[method, , ms]: [string, object, number]) => call(address, method, ms)) as never,
      }),
    });
    const ask = async (method: 'status' | 'deleteStream' = 'status') => {
      const answer = await until(events, manager.call(method, { stream: 's' } as never, 1000));
      return [answer, Math.round(events.nowNs / 1e6)];
    };
    return { ask, asked, managers, events };
  }

  it('is passed over as soon as another one says that it leads', async () => {
    const { ask, asked } = cluster({ A: {}, B: 'refuses', C: { afterMs: 1 } });
    expect(await ask()).toEqual(['C', 12]);
    expect(asked).toEqual(['A status', 'B locateExtent', 'C locateExtent', 'C status']);
    // Without the search it costs its whole time.
    const without = cluster({ A: {}, B: 'refuses', C: { afterMs: 1 } }, Number.POSITIVE_INFINITY);
    await expect(without.ask()).rejects.toThrow(/no answer in time/);
  });

  it('is passed over when the lead has moved at last', async () => {
    const { ask, managers, events } = cluster({ A: {}, B: 'refuses', C: 'refuses' });
    events.after(200e6, () => {
      managers['B'] = { afterMs: 1 };
    });
    const [answer, ms] = await ask();
    expect(answer).toBe('B');
    expect(ms).toBeLessThan(215);
  });

  it('is waited for while no other one leads, and asked once', async () => {
    const { ask, asked } = cluster({ A: { afterMs: 95 }, B: 'refuses', C: {} });
    expect(await ask()).toEqual(['A', 95]);
    expect(asked.filter((one) => one.startsWith('A'))).toEqual(['A status']);
  });

  it('may have deleted something: nobody else is asked to', async () => {
    const { ask, asked } = cluster({ A: {}, B: { afterMs: 1 } });
    await expect(ask('deleteStream')).rejects.toThrow(/no answer in time/);
    expect(asked).toEqual(['A deleteStream']);
  });
});

describe('a manager of several', () => {
  /** What each of them says, by address. */
  function following(answers: Record<string, () => Promise<unknown>>, addresses = Object.keys(answers)) {
    const events = new EventQueue();
    const asked: string[] = [];
    const manager = new FollowingManager({
      addresses,
      clock: virtualClock(events),
      retryMs: 5,
      searchMs: 10,
      at: (address) => ({
        call: (() => {
          asked.push(address);
          return answers[address]();
        }) as never,
      }),
    });
    return { asked, manager, ask: () => until(events, manager.call('status', {}, 100)) };
  }

  const refuses = (address: string, leader?: string) => () => Promise.reject(notLeader(address, leader));

  it('is found where another one says that it is, also where nobody has named it', async () => {
    const { asked, ask } = following({ A: refuses('A', 'C'), B: refuses('B'), C: async () => 'it' }, ['A', 'B']);
    expect(await ask()).toBe('it');
    expect(await ask()).toBe('it');
    expect(asked).toEqual(['A', 'C', 'C']);
  });

  it('is asked for again while none leads, until the time is over', async () => {
    let rounds = 0;
    const { ask } = following({ A: refuses('A'), B: () => (++rounds < 4 ? refuses('B')() : Promise.resolve('it')) });
    expect(await ask()).toBe('it');
    const { ask: askNone, asked } = following({ A: refuses('A'), B: refuses('B') });
    await expect(askNone()).rejects.toMatchObject({ remoteCode: 'NOT_LEADER' });
    expect(asked.length).toBeGreaterThan(20);
  });

  it('is another one when it is away; its own refusals are answers', async () => {
    const { ask } = following({ A: () => Promise.reject(new Error('away')), B: async () => 'it' });
    expect(await ask()).toBe('it');
    const missing = following({ A: () => Promise.reject(new RpcError('MISSING', 'no')), B: async () => 'it' });
    await expect(missing.ask()).rejects.toMatchObject({ remoteCode: 'MISSING' });
  });
});
