import { describe, expect, it } from 'vitest';
import { capacityBps } from '../../src/sim/scenario/capacity.js';
import { dumbbell, star, type Topology } from '../../src/sim/topology.js';

const GBPS = 1e9;
const LINK = { rateBps: 10 * GBPS, delayNs: 1000 };

function linksOf({ links }: Topology): Map<string, { rateBps: number }> {
  return new Map(
    links.flatMap(({ a, b, rateBps }) => [
      [`${a}>${b}`, { rateBps }],
      [`${b}>${a}`, { rateBps }],
    ]),
  );
}
const capacity = (topology: Topology, from: string[], to: string[]) =>
  capacityBps(linksOf(topology), new Set(from), new Set(to)) / GBPS;

describe('what links can carry', () => {
  it.each([
    ['one to one', ['h0'], ['h1'], 10],
    ['many to one', ['h0', 'h1', 'h2'], ['h3'], 10],
    ['one to many', ['h0'], ['h1', 'h2', 'h3'], 10],
    ['many to many', ['h0', 'h1'], ['h2', 'h3'], 20],
    ['all to all', ['h0', 'h1', 'h2', 'h3'], ['h0', 'h1', 'h2', 'h3'], 40],
  ])('on one switch: %s', (_, from, to, gbps) => {
    expect(capacity(star(4, LINK), from, to)).toBe(gbps);
  });

  it('is that of the link in the middle where all flows cross it, and more where some do not', () => {
    const topology = dumbbell(8, LINK, { rateBps: 10 * GBPS, delayNs: 1000 });
    expect(capacity(topology, ['h0', 'h1', 'h2'], ['h4', 'h5', 'h6'])).toBe(10);
    expect(capacity(topology, ['h0', 'h1', 'h2'], ['h3', 'h4', 'h5'])).toBe(20);
  });

  it('needs flow to be moved to another path: the first path found takes the link that the second one needs', () => {
    const links = new Map(
      ['a>x', 'a>y', 'x>y', 'x>u', 'y>v', 'u>b', 'v>b', 'y>u'].map((name) => [name, { rateBps: 1 }] as const),
    );
    expect(capacityBps(links, new Set(['a']), new Set(['b']))).toBe(2);
  });

  it('is nothing where there is no way', () => {
    expect(capacityBps(new Map(), new Set(['h0']), new Set(['h1']))).toBe(0);
  });
});
