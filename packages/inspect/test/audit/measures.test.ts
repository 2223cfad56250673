/** What an audit tells without a verdict. */

import { describe, expect, it } from 'vitest';
import { RC_ACK, RC_SEND_ONLY } from '../../../../src/packet/opcode.js';
import { Distribution } from '../../src/audit/distribution.js';
import { cmReply, cmRequest, conversation, type Turn } from './conversation.js';
import { audited, golden } from './golden.js';

const CM = [cmRequest({ qpn: 0x22, startPsn: 7, ackTimeout: 14 }), cmReply({ qpn: 0x11, startPsn: 50 })];
const send = (psn: number): Turn => ({ opcode: RC_SEND_ONLY, psn, bytes: 4, ackReq: true });
const answer = (psn: number, syndrome: number): Turn => ({ back: true, opcode: RC_ACK, psn, syndrome, msn: 1 });
const MS = 1e6;

const measured = (turns: readonly Turn[]) => {
  const { measures, choices } = audited(conversation([...CM, ...turns]));
  return {
    times: Object.fromEntries(measures.map(({ name, min, max, count }) => [name, { min, max, count }])),
    choices: choices.map(({ rule, choice }) => [rule, choice]),
  };
};

describe('measures, in a conversation of one packet a millisecond', () => {
  it('the NAK, what the requester makes of it, and the retransmission', () => {
    const { times, choices } = measured([50, 52, 53].map(send).concat(answer(51, 0x60), send(51), send(52)));
    expect(times['NAK generation']).toEqual({ min: 2 * MS, max: 2 * MS, count: 1 }); // 52 shows the gap
    expect(times['NAK reaction']).toEqual({ min: MS, max: MS, count: 1 });
    expect(times['retransmission']).toEqual({ min: 3 * MS, max: 3 * MS, count: 1 });
    expect(choices).toEqual([[48, 'all from the missing packet on (go-back-N)']]);
  });

  it('selective repeat is told from go-back-N', () => {
    const { choices } = measured([50, 51, 52, 53].map(send).concat(answer(51, 0x60), send(51), send(54)));
    expect(choices).toEqual([[48, 'the missing packet alone (selective repeat)']]);
  });

  it('the transport timeout of a request that stands alone; a copy that comes at once is one of the network', () => {
    const { times } = measured([send(50), { ...send(50), atMs: 5 }, { ...send(50), atMs: 80 }]);
    expect(times['transport timeout']).toEqual({ min: 75 * MS, max: 75 * MS, count: 1 });
  });

  it('silence after an RNR NAK is told from a NAK', () => {
    const rnr = [send(50), send(51), answer(50, 0x2c), send(52)];
    expect(measured([...rnr, send(50)]).choices).toEqual([[60, 'silence about packets after an RNR NAK']]);
    expect(measured([...rnr, answer(50, 0x60), send(50)]).choices).toContainEqual([
      60,
      'NAK 0x60 for packets after an RNR NAK',
    ]);
  });

  it('CNPs by scope', () => {
    const cnp = (destQpn: number): Turn => ({ back: true, opcode: 0x81, psn: 0, becn: true, destQpn });
    const { times } = measured([cnp(0x22), cnp(0x23), cnp(0x22), cnp(0x23)]);
    expect(times['CNP interval of a queue pair']).toEqual({ min: 2 * MS, max: 2 * MS, count: 2 });
    expect(times['CNP interval of a sender']).toEqual({ min: MS, max: MS, count: 3 });
  });
});

it('Soft-RoCE answers a part of a READ with MIDDLE, and does go-back-N', () => {
  const choices = (name: string) => audited(golden(name)).choices.map(({ rule, choice }) => [rule, choice]);
  expect(choices('loss-resp-read-rc-v4')).toContainEqual([64, 'answers to a part begin with MIDDLE or LAST']);
  expect(choices('loss-req-send-rc-v4')).toContainEqual([48, 'all from the missing packet on (go-back-N)']);
  expect(choices('rnr-nak-rc-v4')).toContainEqual([60, 'NAK 0x60 for packets after an RNR NAK']);
});

describe('a distribution', () => {
  it('has its percentiles right to 7 %', () => {
    const distribution = new Distribution();
    for (let i = 1; i <= 100_000; i++) distribution.add(i * 1000);
    const { count, min, median, p99, max } = distribution.summary()!;
    expect([count, min, max]).toEqual([100_000, 1000, 1e8]);
    expect(median / 5e7).toBeGreaterThan(0.93);
    expect(median / 5e7).toBeLessThan(1.07);
    expect(p99 / 9.9e7).toBeGreaterThan(0.93);
    expect(p99 / 9.9e7).toBeLessThan(1.07);
  });

  it('takes 0, numbers beyond 2^32, and none', () => {
    const distribution = new Distribution();
    expect(distribution.summary()).toBeUndefined();
    for (const value of [0, -5, 3e12]) distribution.add(value);
    expect(distribution.summary()).toMatchObject({ count: 3, min: 0, median: 0, max: 3e12 });
  });
});
