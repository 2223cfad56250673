/** The limiter against a model that keeps one plain list and searches all of it. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { virtualClock } from '../../packages/lab/src/sim/virtual-clock.js';
import { ConnectionLimiter, type ConnectionQuota } from '../../src/core/connection-limiter.js';
import { RoceError } from '../../src/core/errors.js';
import { NS_PER_MS } from '../../src/core/units.js';
import { IpAddress } from '../../src/packet/address.js';

type State = 'pending' | 'admitted';

const at = (network: string) => ({ network });
const BOTH: readonly State[] = ['pending', 'admitted'];

function limiterOf(quotas: ReadonlyArray<ConnectionQuota<State>>, evicted: unknown[] = []) {
  return new ConnectionLimiter<string>({ quotas, evict: (connection) => evicted.push(connection) });
}

describe('quotas', () => {
  it('hold per network and in total, and name the limit that is reached', () => {
    const limiter = limiterOf([{ states: ['admitted'], total: 3, perAddress: 2 }]);
    limiter.enter('a1', 'admitted', at('A'));
    limiter.enter('a2', 'admitted', at('A'));
    expect([limiter.exceeded('admitted', at('A')), limiter.exceeded('admitted', at('B'))]).toEqual([
      'perAddress',
      undefined,
    ]);
    limiter.enter('b1', 'admitted', at('B'));
    expect(limiter.exceeded('admitted', at('B'))).toBe('total');
    expect([limiter.leave('a1'), limiter.leave('a1')]).toEqual([true, false]);
    expect(limiter.exceeded('admitted', at('A'))).toBeUndefined();
  });

  it('hold for several states together, and for no others', () => {
    const limiter = limiterOf([
      { states: ['pending'], perAddress: 1 },
      { states: BOTH, total: 2 },
    ]);
    limiter.enter('a1', 'pending', at('A'));
    expect([limiter.exceeded('pending', at('A')), limiter.exceeded('admitted', at('A'))]).toEqual([
      'perAddress',
      undefined,
    ]);
    limiter.enter('b1', 'admitted', at('B'));
    expect([limiter.exceeded('pending', at('C')), limiter.exceeded('admitted', at('C'))]).toEqual(['total', 'total']);
  });

  it('count an IPv6 network of 64 bits as one address', () => {
    const networks = ['2001:db8::1', '2001:db8::ffff:1', '2001:db8:0:1::1', '192.0.2.1'].map(
      (text) => IpAddress.parse(text).network,
    );
    expect(networks[1]).toBe(networks[0]);
    expect(new Set(networks).size).toBe(3);
    expect(networks[3]).toBe('192.0.2.1');
  });
});

describe('eviction', () => {
  it('takes the oldest of the network with the most connections; from a network with its share, its own oldest', () => {
    const limiter = limiterOf([{ states: ['admitted'], total: 4, perAddress: 3 }]);
    limiter.enter('b1', 'admitted', at('B'));
    for (const connection of ['a1', 'a2', 'a3']) limiter.enter(connection, 'admitted', at('A'));
    expect(limiter.oldest('admitted')).toBe('a1');
    expect(limiter.oldest('admitted', at('A'))).toBe('a1');
    expect(limiter.oldest('admitted', at('A'), (connection) => connection !== 'a1')).toBe('a2');
    expect(limiter.oldest('admitted', at('A'), (connection) => connection === 'b1')).toBeUndefined();
    expect(limiter.oldest('admitted', undefined, (connection) => connection === 'b1')).toBe('b1');
  });

  it('takes the older of two where networks have equally many', () => {
    const limiter = limiterOf([]);
    for (const [connection, network] of ['a1 A', 'b1 B', 'a2 A'].map((text) => text.split(' '))) {
      limiter.enter(connection, 'pending', at(network));
    }
    limiter.leave('a1');
    expect(limiter.oldest('pending')).toBe('b1');
  });

  it('spares a connection that has finished its handshake, and counts it as admitted from then on', () => {
    const evicted: string[] = [];
    const served = new Set(['a1', 'a2']);
    const limiter = new ConnectionLimiter<string>({
      quotas: [{ states: BOTH, total: 3, perAddress: 3 }],
      evict: (connection) => evicted.push(connection),
    });
    for (const connection of ['a1', 'a2', 'a3', 'a4'])
      expect(limiter.admit(connection, at('A'), () => served.has(connection))).toBe(true);
    expect(evicted).toEqual(['a3']);
    expect([limiter.count('admitted'), limiter.count('pending')]).toEqual([2, 1]);
    served.add('a4');
    expect([limiter.admit('b1', at('B')), limiter.turnedAway]).toEqual([false, 2]);
    expect(evicted).toEqual(['a3', 'b1']);
  });
});

describe('a handshake', () => {
  const fail = (error: Error) => expect.unreachable(error.message);

  it('ends with the connection no longer pending, or with its error', async () => {
    const limiter = limiterOf([]);
    const errors: Error[] = [];
    const run = async () => expect(limiter.count('pending')).toBe(1);
    expect(await limiter.handshake('a1', at('A'), run, fail)).toBe(true);
    const left = new RoceError('ERR_ROCE_CONNECT', 'it left');
    expect(
      await limiter.handshake(
        'a2',
        at('A'),
        () => Promise.reject(left),
        (error) => errors.push(error),
      ),
    ).toBe(false);
    expect(errors).toEqual([left]);
    expect(limiter.count('pending')).toBe(0);
  });

  it('says nothing more of a connection that was evicted meanwhile', async () => {
    const evicted: string[] = [];
    const limiter = limiterOf([{ states: ['pending'], total: 1 }], evicted);
    let end!: (error: Error) => void;
    const first = limiter.handshake('a1', at('A'), () => new Promise((_, reject) => (end = reject)), fail);
    expect(await limiter.handshake('b1', at('B'), async () => {}, fail)).toBe(true);
    end(new Error('its socket is closed'));
    expect([await first, evicted]).toEqual([false, ['a1']]);
  });

  it('has a deadline, which those that have ended it in time do not meet', () => {
    const events = new EventQueue();
    const clock = virtualClock(events);
    const evicted: string[] = [];
    const limiter = new ConnectionLimiter<string>({
      quotas: [],
      evict: (connection) => evicted.push(connection),
      handshakeDeadline: { clock, ms: 10 },
    });
    for (const connection of ['silent', 'served', 'left', 'moved']) {
      limiter.admit(connection, at('A'), () => connection === 'served');
    }
    limiter.leave('left');
    limiter.enter('moved', 'admitted', at('A'));
    events.run({ untilNs: 10 * NS_PER_MS - 1 });
    expect(evicted).toEqual([]);
    events.run({ untilNs: 20 * NS_PER_MS });
    expect(evicted).toEqual(['silent']);
    expect([...limiter.connections]).toEqual(['served', 'moved']);
  });
});

interface Held {
  readonly id: number;
  readonly network: string;
  state: State;
  order: number;
}

/** What the policy says, by a search of the whole list. */
function oldestBy(held: readonly Held[], state: State, network?: string): number | undefined {
  const inState = held.filter((one) => one.state === state);
  const countOf = (one: Held) => inState.filter((other) => other.network === one.network).length;
  const eligible = inState.filter((one) => network === undefined || one.network === network);
  const most = Math.max(0, ...eligible.map(countOf));
  return eligible.filter((one) => countOf(one) === most).sort((a, b) => a.order - b.order)[0]?.id;
}

const step = fc.record({
  kind: fc.constantFrom('arrive', 'arrive', 'arrive', 'finish', 'leave'),
  network: fc.constantFrom('A', 'B', 'C', 'D'),
  pick: fc.nat(1000),
});
const limit = fc.integer({ min: 1, max: 6 });

describe('under any traffic', () => {
  it('no quota is exceeded, the policy names who is evicted, and all counts return to zero', () => {
    const traffic = fc.record({ steps: fc.array(step, { maxLength: 80 }), all: limit, share: limit, pending: limit });
    fc.assert(
      fc.property(traffic, ({ steps, all, share, pending }) => {
        const evicted: number[] = [];
        const quotas: ReadonlyArray<ConnectionQuota<State>> = [
          { states: ['pending'], total: pending },
          { states: BOTH, total: all, perAddress: share },
        ];
        const limiter = new ConnectionLimiter<number>({ quotas, evict: (connection) => evicted.push(connection) });
        let held: Held[] = [];
        const countOf = (states: readonly State[], network?: string) =>
          held.filter((one) => states.includes(one.state) && (network ?? one.network) === one.network).length;
        for (const [order, { kind, network, pick }] of steps.entries()) {
          const one = held[pick % Math.max(1, held.length)];
          if (kind === 'arrive') {
            const hasShare = countOf(BOTH, network) >= share;
            const isFull = hasShare || held.length >= all || countOf(['pending']) >= pending;
            const expected = isFull ? oldestBy(held, 'pending', hasShare ? network : undefined) : undefined;
            evicted.length = 0;
            const isAdmitted = limiter.admit(order, at(network));
            expect(evicted).toEqual(isFull ? [expected ?? order] : []);
            expect(isAdmitted).toBe(!isFull || expected !== undefined);
            held = held.filter(({ id }) => id !== expected);
            if (isAdmitted) held.push({ id: order, network, state: 'pending', order });
          } else if (one !== undefined && kind === 'finish') {
            limiter.enter(one.id, 'admitted', at(one.network));
            if (one.state === 'pending') one.order = order;
            one.state = 'admitted';
          } else if (one !== undefined) {
            expect(limiter.leave(one.id)).toBe(true);
            held = held.filter((other) => other !== one);
          }
          expect([...limiter.connections]).toEqual(held.map(({ id }) => id));
          for (const state of BOTH) expect(limiter.count(state)).toBe(countOf([state]));
          expect(held.length).toBeLessThanOrEqual(all);
          expect(limiter.count('pending')).toBeLessThanOrEqual(pending);
          for (const name of ['A', 'B', 'C', 'D']) expect(countOf(BOTH, name)).toBeLessThanOrEqual(share);
        }
        for (const { id } of held) limiter.leave(id);
        expect([...limiter.connections]).toEqual([]);
        for (const state of BOTH) for (const name of ['A', 'B', undefined]) expect(limiter.count(state, name)).toBe(0);
      }),
    );
  });
});
