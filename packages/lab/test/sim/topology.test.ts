import { describe, expect, test } from 'vitest';
import { dumbbell, leafSpine, pair, region, shortestPaths, star } from '../../src/sim/topology.js';

const LINK = { rateBps: 40e9, delayNs: 1000 };

describe('routes', () => {
  test('a star leads to every host directly', () => {
    expect(shortestPaths(star(3, LINK)).get('s0')).toEqual(
      new Map([
        ['h0', ['h0']],
        ['h1', ['h1']],
        ['h2', ['h2']],
      ]),
    );
  });

  test('a pair is the star of two', () => {
    expect(pair(LINK)).toEqual(star(2, LINK));
  });

  test('a dumbbell leads to the other side over the middle', () => {
    const routes = shortestPaths(dumbbell(4, LINK, LINK));
    expect(routes.get('s0')!.get('h3')).toEqual(['s1']);
    expect(routes.get('s1')!.get('h3')).toEqual(['h3']);
  });

  test('leaves lead over every spine, spines over one leaf, and never over a host', () => {
    const routes = shortestPaths(leafSpine(2, 3, 2, LINK, LINK));
    expect(routes.get('l0')!.get('h3')).toEqual(['p0', 'p1', 'p2']);
    expect(routes.get('l0')!.get('h0')).toEqual(['h0']);
    expect(routes.get('p1')!.get('h3')).toEqual(['l1']);
  });

  test('a host without a way to it is refused', () => {
    const broken = { hosts: ['h0'], switches: ['s0'], links: [] };
    expect(() => shortestPaths(broken)).toThrow('no links lead from s0 to h0');
  });
});

test('a region has its long link between the datacenters', () => {
  const { switches, links } = region(4, LINK, { rateBps: 100e9, delayNs: 1e6 });
  expect(switches).toEqual(['d0', 'd1']);
  expect(links.at(-1)).toEqual({ a: 'd0', b: 'd1', rateBps: 100e9, delayNs: 1e6 });
  expect(links.filter(({ b }) => b === 'd1')).toHaveLength(3);
});
