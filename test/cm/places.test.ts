/** Who gets a place at a listener, and who makes room. */

import { describe, expect, it } from 'vitest';
import { Crowd } from '../../src/cm/crowd.js';
import { Places } from '../../src/cm/places.js';
import { PROVED_PACE, SetUpPace, UNPROVED_PACE } from '../../src/cm/set-up-pace.js';
import { SeededRandom } from '../../src/core/random.js';
import { NS_PER_MS, NS_PER_S } from '../../src/core/units.js';
import { IpAddress } from '../../src/packet/address.js';
import { Dice } from '../support/dice.js';

const A = IpAddress.parse('192.0.2.1');
const B = IpAddress.parse('192.0.2.2');
/** Two addresses of one IPv6 network of 64 bits, and one of the next. */
const NEAR = IpAddress.parse('2001:db8::1');
const NEXT_DOOR = IpAddress.parse('2001:db8::ffff:1');
const ELSEWHERE = IpAddress.parse('2001:db8:0:1::1');

describe('Places', () => {
  const anybody = () => true;

  it('are bounded per address and in total', () => {
    const places = new Places<string>({ total: 3, perAddress: 2 });
    places.enter('a1', A);
    places.enter('a2', A);
    expect([places.fullFor(A), places.fullFor(B)]).toEqual(['perAddress', undefined]);
    places.enter('b1', B);
    expect(places.fullFor(B)).toBe('total');
    expect([places.leave('a1'), places.leave('a1')]).toEqual([true, false]);
    expect(places.fullFor(A)).toBeUndefined();
  });

  it('make room at the cost of the address that has the most, the oldest first; a full address at its own', () => {
    const places = new Places<string>({ total: 4, perAddress: 3 });
    places.enter('b1', B);
    for (const member of ['a1', 'a2', 'a3']) places.enter(member, A);
    expect(places.inTheWayOf(B, anybody)).toBe('a1');
    expect(places.inTheWayOf(A, anybody)).toBe('a1');
    expect(places.inTheWayOf(A, (member) => member !== 'a1')).toBe('a2');
    expect(places.inTheWayOf(A, (member) => member === 'b1')).toBeUndefined();
  });

  it('count an IPv6 network of 64 bits as one address', () => {
    const places = new Places<string>({ total: 9, perAddress: 1 });
    places.enter('near', NEAR);
    expect([places.fullFor(NEXT_DOOR), places.fullFor(ELSEWHERE)]).toEqual(['perAddress', undefined]);
  });

  it('keep their books under any traffic', () => {
    const dice = new Dice(new SeededRandom(1).stream('places'));
    const places = new Places<number>({ total: 8, perAddress: 3 });
    const model = new Map<number, IpAddress>();
    const addresses = [A, B, NEAR, ELSEWHERE];
    for (let member = 0; member < 5000; member++) {
      const address = dice.pick(addresses);
      if (places.fullFor(address) !== undefined) {
        const first = places.inTheWayOf(address, anybody)!;
        expect(places.leave(first)).toBe(true);
        model.delete(first);
      }
      places.enter(member, address);
      model.set(member, address);
      if (dice.chance(0.3)) {
        const leaving = dice.pick([...model.keys()]);
        places.leave(leaving);
        model.delete(leaving);
      }
      expect([...places.members]).toEqual([...model.keys()]);
      expect(model.size).toBeLessThanOrEqual(8);
      for (const one of addresses) {
        expect([...model.values()].filter((held) => held === one).length).toBeLessThanOrEqual(3);
      }
    }
  });
});

describe('a crowd', () => {
  it('names the oldest of the fullest address, and of one', () => {
    const crowd = new Crowd<{ name: string; remote: IpAddress }>();
    const [a1, near, door] = [
      { name: 'a1', remote: A },
      { name: 'near', remote: NEAR },
      { name: 'door', remote: NEXT_DOOR },
    ];
    for (const member of [a1, near, door]) crowd.add(member);
    expect([crowd.size, crowd.countOf(NEXT_DOOR), crowd.oldestOf(NEXT_DOOR), crowd.oldestOfFullest()]).toEqual([
      3,
      2,
      near,
      near,
    ]);
    crowd.delete(near);
    crowd.delete(near);
    expect([crowd.size, crowd.oldestOfFullest()]).toEqual([2, a1]);
  });
});

describe('the pace of set-ups', () => {
  it.each([
    ['proved nothing', UNPROVED_PACE, 16, 160],
    ['proved itself', PROVED_PACE, 256, 1280],
  ])('of an address that has %s is a burst, then so many a second', (_, terms, burst, inTenSeconds) => {
    const pace = new SetUpPace(terms);
    const begun = (fromNs: number, untilNs: number) => {
      let count = 0;
      for (let now = fromNs; now < untilNs; now += 100_000) {
        if (pace.opensNs(A, now) > now) continue;
        pace.spend(A, now);
        count++;
      }
      return count;
    };
    expect(begun(0, 50 * NS_PER_MS) - burst).toBeLessThan(8);
    expect(begun(50 * NS_PER_MS, 11 * NS_PER_S)).toBeGreaterThan(inTenSeconds);
    expect(Math.abs(begun(11 * NS_PER_S, 21 * NS_PER_S) - inTenSeconds)).toBeLessThanOrEqual(1);
    expect(pace.opensNs(B, 0)).toBe(0);
  });
});
