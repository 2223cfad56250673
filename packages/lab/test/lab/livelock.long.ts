/**
 * The livelock experiment in virtual time against its closed forms. K = 256: one packet in so many is lost; M packets a message; W packets leave
 * between a lost one and the restart. The loss rule counts retransmissions, too.
 *
 *   go-back-0        0 for M >= K
 *   go-back-N        1 - (W+1)/(k K), k = ceil((W+1)/K)
 *   selective repeat 1 - 1/K
 *   random loss p    go-back-N (1-p)/(1+pW); selective repeat 1-p; go-back-0 M / (((1-p)^-M - 1)/p + W((1-p)^-M - 1))
 */

import { describe, expect, test } from 'vitest';
import { casesOfRound } from '../../../../test/support/rounds.js';
import { queueOf, runBuiltIn } from './run-built-in.js';

const K = 256;
/** A packet of 1 KiB, and an acknowledgement, on a 40 Gb/s link, preamble and gap included. */
const PACKET_NS = (1024 + 12 + 4 + 42 + 24) / 5;
const ANSWER_NS = (12 + 4 + 4 + 42 + 24) / 5;

/** Delay of each of the two cables such that W packets follow the lost one before the NAK is heard. */
function delayFor(packets: number): string {
  return `topology.delay=${((packets - 0.5) * PACKET_NS - 2 * PACKET_NS - 2 * ANSWER_NS) / 4}`;
}

describe('one packet in 256, always the same', () => {
  // The two that livelock stand apart, so that each round has one and others.
  test.each([...casesOfRound([16, 64, 128, 200, 300, 512]), ...casesOfRound([255, 511])])(
    'go-back-N, W = %i',
    async (packets) => {
      const { summary, flows } = await runBuiltIn(
        'livelock-go-back-n',
        delayFor(packets),
        'duration=60ms',
        'nic.timeout=12',
      );
      const rounds = Math.ceil((packets + 1) / K);
      const expected = 1 - (packets + 1) / (rounds * K);
      if (expected === 0)
        expect(flows[0].bytes).toBe(0); // W+1 a multiple of 256: it livelocks, too.
      else expect(Math.abs(summary.efficiency / expected - 1)).toBeLessThan(0.01);
    },
  );

  test('W is what the delay makes it', async () => {
    const result = await runBuiltIn('livelock-go-back-n', delayFor(64));
    const lost = queueOf(result, 's0>h1').droppedPackets;
    expect(Math.round(result.summary.retransmittedPackets / lost)).toBe(65);
  });

  test('selective repeat', async () => {
    const { summary } = await runBuiltIn('livelock-selective-repeat');
    expect(Math.abs(summary.efficiency / (1 - 1 / K) - 1)).toBeLessThan(0.001);
  });

  test.each(['livelock-go-back-0', 'livelock-go-back-0-read'])('%s delivers nothing on a full link', async (name) => {
    const result = await runBuiltIn(name);
    expect(result.flows[0].bytes).toBe(0);
    expect(queueOf(result, 's0>h1').utilization).toBeGreaterThan(0.95);
  });

  test('go-back-0 delivers messages of fewer than 256 packets', async () => {
    const { summary } = await runBuiltIn('livelock-go-back-0', 'flows[0].message=64KiB');
    expect(summary.efficiency).toBeGreaterThan(0.5);
  });
});

describe('random loss', () => {
  test.each([
    ...casesOfRound([
      ['go-back-n', 1e-4, 16, 2],
      ['go-back-n', 1e-3, 16, 2],
      ['go-back-n', 1e-3, 128, 4],
      ['go-back-n', 1e-2, 16, 2],
    ] as const),
    ...casesOfRound([
      ['selective-repeat', 1e-3, 16, 2],
      ['selective-repeat', 1e-2, 16, 2],
    ] as const),
  ])('%s, p = %d, W = %i', async (recovery, p, packets, timeout) => {
    const { summary } = await runBuiltIn(
      `livelock-${recovery}`,
      delayFor(packets),
      `faults=h0>h1:random=${p}`,
      'duration=100ms',
      `nic.timeout=${timeout}`, // A retransmission that is lost, too, waits for the timer, which the closed form leaves out.
    );
    const expected = recovery === 'go-back-n' ? (1 - p) / (1 + p * packets) : 1 - p;
    expect(Math.abs(summary.efficiency / expected - 1)).toBeLessThan(0.01);
  });

  // Short messages: thousands of them come through, so that their mean is known to a percent.
  test.each([
    [64, 1e-3, '100ms'],
    [256, 5e-3, '300ms'],
  ])('go-back-0, messages of %i packets, p = %d', async (messagePackets, p, duration) => {
    const packets = 16;
    const { summary } = await runBuiltIn(
      'livelock-go-back-0',
      delayFor(packets),
      `faults=h0>h1:random=${p}`,
      `duration=${duration}`,
      `flows[0].message=${messagePackets}KiB`,
      'nic.timeout=2',
    );
    const growth = (1 - p) ** -messagePackets - 1;
    const expected = messagePackets / (growth / p + packets * growth);
    expect(Math.abs(summary.efficiency / expected - 1)).toBeLessThan(0.01);
  });
});
