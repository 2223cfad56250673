/**
 * Loss up to 10 % and reordering up to 64 packets deep, both ways at once: every byte arrives, in order and once, and a floor of the
 * link's rate is left. docs/reliability.md says what was seen.
 */

import { describe, expect, it } from 'vitest';
import { createPair, type Pair } from '../support/pair.js';
import { repeated } from '../support/repetitions.js';
import { OPS, transfer } from './transfer.js';

const RATE_BPS = 10e9;
const MESSAGE_BYTES = 64 << 10;
const MESSAGES = 64;
/** 131 us: far above the round trip of 5 us, so that the tails of bursts do not decide everything. */
const TIMEOUT = 5;
const SCHEMES = ['go-back-n', 'selective-repeat'] as const;
type Scheme = (typeof SCHEMES)[number];

function badPair(recovery: Scheme | 'go-back-0', faults: string): Promise<Pair> {
  const attr = { timeout: TIMEOUT, inflightPackets: 128 };
  return createPair({ recovery, faults, rateBps: RATE_BPS, attrA: attr, attrB: attr });
}

/** Of the link's rate, in percent, that must be left. With nothing lost 94 % are payload. */
const FLOORS: ReadonlyArray<readonly [string, Readonly<Record<Scheme, number>>]> = [
  ['random=0.01', { 'go-back-n': 70, 'selective-repeat': 80 }],
  ['random=0.1', { 'go-back-n': 10, 'selective-repeat': 30 }],
  ['burst=0.01,0.2', { 'go-back-n': 60, 'selective-repeat': 45 }],
  ['reorder=0.01,3', { 'go-back-n': 70, 'selective-repeat': 80 }],
  ['reorder=0.01,64', { 'go-back-n': 60, 'selective-repeat': 80 }],
  ['reorder=0.1,64', { 'go-back-n': 7, 'selective-repeat': 40 }],
  ['random=0.05;reorder=0.05,64;duplicate=0.05;corrupt=0.01', { 'go-back-n': 8, 'selective-repeat': 25 }],
];

describe.each(FLOORS)('%s, both ways', (faults, floors) => {
  it.each(SCHEMES.flatMap((scheme) => repeated(1, OPS).map((op) => [scheme, op] as const)))(
    '%s brings every byte of %s, once and in order, and leaves its floor of the rate',
    async (scheme, op) => {
      const pair = await badPair(scheme, faults);
      const share = (100 * transfer(pair, { op, messages: MESSAGES, messageBytes: MESSAGE_BYTES })) / RATE_BPS;
      console.log(`${faults}, ${scheme}, ${op}: ${share.toFixed(1)} % of the rate`);
      expect(share).toBeGreaterThan(floors[scheme]);
    },
  );
});

describe('messages of 1,024 packets, one packet in ten lost', () => {
  const run = async (recovery: Scheme | 'go-back-0') => {
    const pair = await badPair(recovery, 'a>b:random=0.1');
    const { a, b } = pair;
    a.qp.postSend({ opcode: 'RDMA_WRITE', sges: [a.mr.sge()], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
    pair.run({ untilNs: 100e6, eventsMax: 5_000_000 }); // A hundred times what the message takes on the link.
    const { packets } = pair.link.counters['a>b'];
    return { completions: a.cq.poll().map(({ statusName }) => statusName), packets };
  };

  it.each(SCHEMES)('%s brings them', async (scheme) => {
    expect((await run(scheme)).completions).toEqual(['SUCCESS']);
  });

  it('go-back-0 brings none, at full use of the link', async () => {
    const { completions, packets } = await run('go-back-0');
    console.log(`go-back-0: ${packets} packets for none of 1024`);
    expect(completions).toEqual([]);
    expect(packets).toBeGreaterThan(50_000);
  });
});
