/** When peers of extents are reached over TCP, in virtual time: the policy of cm/rdma-fallback.ts for each address. */

import { expect, test } from 'vitest';
import { SeededRandom } from '../../../src/core/random.js';
import { PeerFallbacks } from '../src/peer-fallbacks.js';

const SECOND = 1e9;
const peers = () => new PeerFallbacks(new SeededRandom(1).stream('peers'));

/** Seconds from `now` until RDMA may be used again. */
function heldDown(all: PeerFallbacks, address: string, now: number): number {
  let s = 0;
  while (!all.mayUseRdma(address, now + s * SECOND)) s++;
  return s;
}

test('RDMA to an address is held down after a failure, and RDMA to others is not', () => {
  const all = peers();
  expect(all.mayUseRdma('a:1', 0)).toBe(true);
  all.onFailure('a:1', 0);
  expect([all.mayUseRdma('a:1', 1), all.mayUseRdma('b:1', 1)]).toEqual([false, true]);
  const s = heldDown(all, 'a:1', 0);
  expect(s).toBeGreaterThanOrEqual(8);
  expect(s).toBeLessThanOrEqual(12);
});

test('the hold-down doubles when the next attempt fails, and also when RDMA fails soon after it worked', () => {
  const all = peers();
  all.onFailure('a:1', 0);
  let now = heldDown(all, 'a:1', 0) * SECOND;
  all.onFailure('a:1', now); // The attempt was the probe.
  const second = heldDown(all, 'a:1', now);
  expect(second).toBeGreaterThanOrEqual(16);
  now += second * SECOND;
  all.onRdma('a:1', now);
  all.onFailure('a:1', now + SECOND);
  expect(heldDown(all, 'a:1', now + SECOND)).toBeGreaterThanOrEqual(32);
});

test('ten minutes without a failure reset it', () => {
  const all = peers();
  all.onFailure('a:1', 0);
  all.onRdma('a:1', heldDown(all, 'a:1', 0) * SECOND);
  all.onFailure('a:1', 700 * SECOND);
  expect(heldDown(all, 'a:1', 700 * SECOND)).toBeLessThanOrEqual(12);
});

test('packets are in doubt while TCP reaches a peer that RDMA does not, and at the next attempt to reach that peer', () => {
  const all = peers();
  all.onTcp('a:1');
  expect(all.isDoubtful('a:1', 0)).toBe(false);
  all.onFailure('a:1', 0); // The peer may be away.
  expect(all.isDoubtful('b:1', 1)).toBe(false);
  all.onTcp('a:1');
  expect([all.isDoubtful('a:1', 1), all.isDoubtful('b:1', 1)]).toEqual([true, true]);
  const now = heldDown(all, 'a:1', 0) * SECOND;
  expect([all.isDoubtful('a:1', now), all.isDoubtful('b:1', now)]).toEqual([true, false]);
  all.onRdma('a:1', now);
  expect(all.isDoubtful('a:1', now)).toBe(false);
});
