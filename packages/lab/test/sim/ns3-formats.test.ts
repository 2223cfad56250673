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
    ['25000000000.0', '1us', 25e9, 1000],
    ['2.5e10', '0.000001', 25e9, 1000],
    ['400kbps', '1ms', 400e3, 1e6],
    ['400Kb/s', '1000ns', 400e3, 1000],
    ['50MBps', '1s', 400e6, 1e9],
    ['1Gib/s', '2us', 2 ** 30, 2000],
  ])('may have rates and delays as ns-3 reads them: %s %s', (rate, delay, rateBps, delayNs) => {
    const { links } = parseNs3Topology(`2 1 1 comment\n0\n0 1 ${rate} ${delay} 0\n`);
    expect(links[0].rateBps).toBe(rateBps);
    expect(links[0].delayNs).toBeCloseTo(delayNs, 6);
  });

  test('may have its switches on several lines', () => {
    const text = '5 3 2\n2\n3 4\n0 2 1Gbps 1us\n1 3 1Gbps 1us\n';
    expect(parseNs3Topology(text).switches).toEqual(['s2', 's3', 's4']);
  });

  test.each([
    ['', 'the first line'],
    ['4 1', 'the first line'],
    ['2 1 1\nx\n', 'numbers of switches'],
    ['2 1 2\n0\n0 1 1Gbps 1us\n', 'it announces 2 links and has 1'],
    ['2 1 1 2\n0\n0 1 1Gbps 1us\n', 'its first line has 4 numbers, a form that is not supported'],
    ['10 4 1 2 9 H100\n8 9\n', 'its first line has 5 numbers'],
    ['2 1 1\n7\n0 1 1Gbps 1us\n', 'switch 7 is not one of the 2 nodes'],
    ['2 1 1\n0\n0 1 1Gbps 1hour\n', "'1hour' is not a delay"],
    ['2 1 1\n0\n0 1 1gbps 1us\n', "'1gbps' is not a rate"],
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

  test.each(['', 'many', '2\n2 1 3 100 5 2\n', '1\n2 1 3 100 -5 2\n', '1 5\n2 1 3 100 5 2\n', '1\n2 1 3 100 5\n'])(
    '%j is refused',
    (text) => {
      expect(() => parseNs3Flows(text, 'hpcc')).toThrow('this file cannot be read');
    },
  );
});
