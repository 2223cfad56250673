/** Files of HPCC's simulator and of ns3-rdma, in the form that they have there. */

import { describe, expect, test } from 'vitest';
import { parseNs3Flows, parseNs3Topology } from '../../src/sim/formats/ns3.js';

const TOPOLOGY = `4 1 3
0
0 1 40Gbps 0.001ms 0
0 2 40Gbps 0.001ms 0
0 3 100Gbps 2us 0.000

First line: total node #, switch node #, link #
`;

describe('a topology', () => {
  test('has hosts and switches by their numbers, rates and delays', () => {
    expect(parseNs3Topology(TOPOLOGY)).toEqual({
      hosts: ['h1', 'h2', 'h3'],
      switches: ['s0'],
      links: [
        { a: 's0', b: 'h1', rateBps: 40e9, delayNs: 1000 },
        { a: 's0', b: 'h2', rateBps: 40e9, delayNs: 1000 },
        { a: 's0', b: 'h3', rateBps: 100e9, delayNs: 2000 },
      ],
    });
  });

  test.each([
    ['', 'the first line'],
    ['4 1', 'the first line'],
    ['2 1 1\nx\n', 'numbers of switches'],
    ['2 1 2\n0\n0 1 1Gbps 1us\n', 'link 1'],
    ['2 1 1\n0\n0 7 1Gbps 1us\n', 'not there'],
    ['2 1 1\n0\n0 1 fast 1us\n', "'fast'"],
    ['2 1 1\n0\n0 1 1Gbps 1us 0.01\n', 'error rate'],
  ])('%j is refused', (text, message) => {
    expect(() => parseNs3Topology(text)).toThrow(message);
  });
});

describe('flows', () => {
  test("of HPCC's simulator have bytes and a start", () => {
    expect(
      parseNs3Flows('2\n2 1 3 100 200000000 2\n3 1 3 100 1500 2.00001\n\nFirst line: # of flows\n', 'hpcc'),
    ).toEqual([
      { from: 'h2', to: 'h1', bytes: 200e6, start: 0 },
      { from: 'h3', to: 'h1', bytes: 1500, start: 10_000 },
    ]);
  });

  test('of ns3-rdma have packets, a start and an end', () => {
    expect(parseNs3Flows('1\n2 1 3 1000 2.0 9.5\n', 'ns3-rdma')).toEqual([
      { from: 'h2', to: 'h1', bytes: 1e6, start: 0 },
    ]);
  });

  test.each(['', 'many', '2\n2 1 3 100 5 2\n', '1\n2 1 3 100 -5 2\n'])('%j is refused', (text) => {
    expect(() => parseNs3Flows(text, 'hpcc')).toThrow('this file cannot be read');
  });
});
