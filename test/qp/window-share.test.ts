import { describe, expect, it } from 'vitest';
import { windowPackets } from '../../src/qp/peer-in-flight-limit.js';

describe('the window of a queue pair', () => {
  it.each([
    [496, 1, 496],
    [496, 64, 7],
    [496, 248, 2],
    [496, 496, 2],
    [496, 497, 1],
    [496, 1000, 1],
    [2, 1, 2],
    [2, 3, 1],
  ])('with a limit of %i packets and %i queue pairs is %i', (limitPackets, qps, window) => {
    expect(windowPackets({ limitPackets, flows: { count: qps } })).toBe(window);
  });

  it('lets all together fill the peer once, twice its limit, until there are more queue pairs than that', () => {
    for (let qps = 1; qps <= 992; qps++) {
      expect(qps * windowPackets({ limitPackets: 496, flows: { count: qps } })).toBeLessThanOrEqual(992);
    }
  });
});
