/** How fast set-ups of one address are begun. */

import { describe, expect, it } from 'vitest';
import { HandshakeRateLimiter, UNVALIDATED_PACE, VALIDATED_PACE } from '../../src/cm/handshake-rate-limiter.js';
import { NS_PER_MS, NS_PER_S } from '../../src/core/units.js';
import { IpAddress } from '../../src/packet/address.js';

const A = IpAddress.parse('192.0.2.1');
const B = IpAddress.parse('192.0.2.2');

describe('the pace of set-ups', () => {
  it.each([
    ['proved nothing', UNVALIDATED_PACE, 16, 160],
    ['proved itself', VALIDATED_PACE, 256, 1280],
  ])('of an address that has %s is a burst, then so many a second', (_, terms, burst, inTenSeconds) => {
    const pace = new HandshakeRateLimiter(terms);
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
