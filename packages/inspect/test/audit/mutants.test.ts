/** The audit names exactly the rule that a packet breaks. */

import { describe, expect, it } from 'vitest';
import { RC_READ_REQUEST, RC_WRITE_ONLY } from '../../../../src/packet/opcode.js';
import { JUDGED_RULES } from '../../src/audit/catalogue.js';
import { conversation, type Turn } from './conversation.js';
import { audited, broken } from './golden.js';
import {
  AT,
  answer,
  CM,
  CM_TWO_RETRIES,
  emptyWrite,
  MUTANTS,
  misordered,
  notReady,
  numbered,
  PROVOKED_BY,
  refused,
  resumedFrom,
  retried,
  SOUND,
  send,
  sentAgainAfter,
  skippedAndAnswered,
  UC,
} from './mutants.js';

describe('a capture in which one packet breaks one rule', () => {
  it('exists for every rule that audit judges', () => {
    expect(Object.keys(MUTANTS).map(Number)).toEqual(JUDGED_RULES.map(({ id }) => id));
  });

  it.each(Object.entries(MUTANTS))('rule %s, and no other, is found broken', (id, mutant) => {
    const report = audited(mutant(), { capturedAt: AT[Number(id)] ?? '10.77.0.2' });
    expect(broken(report), JSON.stringify(report.findings, undefined, 1)).toEqual([
      ...(Number(id) in PROVOKED_BY ? [PROVOKED_BY[Number(id)]] : []),
      Number(id),
    ]);
  });

  it.each([
    [24, () => misordered(0x61)],
    [44, () => skippedAndAnswered(119, 0x60)],
  ])('rule %d is kept by a responder that refuses what the requester breaks', (id, turns) => {
    const report = audited(conversation(turns()));
    expect(broken(report)).toEqual([PROVOKED_BY[id]]);
    expect(report.rules.find(({ rule }) => rule === id)?.passed).toBe(1);
  });

  it.each([
    [
      'a copy was sent in place of what came out of order',
      [24],
      () => [...misordered(0x60), send(51), answer(51, 0x1f, 2)],
    ],
    ['what was left out was sent after all', [44], () => [...numbered(3), send(119), answer(122, 0x1f, 20)]],
    [
      'an answer came between the retries',
      [54],
      () => [...retried(100, 200), { ...answer(49, 0x1f, 0), atMs: 250 }, { ...send(50), atMs: 300 }],
    ],
    ['the copies are closer than a timeout', [54], () => retried(100, 110, 120, 130, 140)],
    [
      'a NAK asked for the first copy',
      [54],
      () => [
        ...CM_TWO_RETRIES,
        { ...answer(50, 0x60, 0), atMs: 100 },
        ...[200, 300, 400].map((atMs) => ({ ...send(50), atMs })),
      ],
    ],
    [
      'the acknowledgements were progress',
      [59],
      () => [...notReady(2), answer(50, 0x1f, 1), send(51), answer(51, 0x21, 1), send(51)],
    ],
  ] as const)('is not claimed where %s', (_why, rules, turns) => {
    expect(broken(audited(conversation(turns()), { rules, capturedAt: '192.0.2.1' }))).toEqual([]);
  });

  it.each([
    ['retries after timeouts', 54, () => conversation(retried(100, 200, 300)), '192.0.2.2'],
    ['retries after RNR NAKs', 59, () => conversation(notReady(3)), '192.0.2.2'],
    [
      'a copy before the timeout, which may be an old one that was late',
      51,
      () => sentAgainAfter(20_000_000n),
      '192.0.2.2',
    ],
    ['an answer behind a fatal NAK', 81, () => conversation(refused(true)), '192.0.2.1'],
    ['a WRITE without bytes where none was taken before', 68, () => conversation(emptyWrite(0x62, false)), '192.0.2.1'],
  ] as const)('is in doubt elsewhere: %s', (_what, id, capture, capturedAt) => {
    const report = audited(capture(), { rules: [id], capturedAt });
    expect(report.findings).toMatchObject([{ rule: id, verdict: 'cannot tell' }]);
  });

  it.each(Object.entries(SOUND))('rule %s is kept before the change', (id, sound) => {
    const report = audited(sound(), { capturedAt: AT[Number(id)] ?? '10.77.0.2' });
    expect(broken(report)).toEqual([]);
    expect(report.rules.find(({ rule }) => rule === Number(id))?.passed).toBeGreaterThan(0);
  });

  it('is not found when the rule is not asked for', () => {
    const report = audited(MUTANTS[36](), { rules: [1, 2, 40] });
    expect(broken(report)).toEqual([]);
    expect(report.rules.map(({ rule }) => rule)).toEqual([1, 2, 40]);
    expect(report.findings).toEqual([]);
  });

  it('is not claimed where the capture may miss the packet: the copy that a NAK asks for', () => {
    const report = audited(conversation(resumedFrom(307, [52, 53, 54]))); // 306 is missing
    expect(broken(report)).toEqual([]);
    expect(report.findings).toMatchObject([{ rule: 47, verdict: 'cannot tell' }]);
  });

  it.each([
    [50, [47]],
    [51, []],
  ])('is not claimed where an acknowledgement says that the missing packet was only late: up to %d', (psn, rules) => {
    const sent = [50, 51, 52, 53, 54, 55].map((at, i) => ({ ...send(at), ipId: 300 + i }));
    const again = [52, 53, 54, 55].map((at, i) => ({ ...send(at), ipId: 306 + i }));
    const answers = [answer(51, 0x60, 1), answer(psn, 0x1f, psn - 49)];
    const report = audited(conversation([...CM, ...sent, ...answers, ...again]), { rules: [47] });
    expect(broken(report)).toEqual(rules);
  });

  it('is nobody’s where a packet is of another transport than the connection, and so is dropped', () => {
    const write = { psn: 50, dmaLength: 0, ackReq: true };
    const turns = [
      ...CM,
      { ...write, opcode: RC_WRITE_ONLY | UC },
      { ...write, opcode: RC_WRITE_ONLY },
      answer(50, 0x1f, 1),
    ];
    expect(broken(audited(conversation(turns)))).toEqual([]);
  });

  it('is the requester’s alone where it asks for another length, and gets that', () => {
    const asked = (dmaLength: number): Turn => ({ opcode: RC_READ_REQUEST, psn: 50, dmaLength });
    const response: Turn = { back: true, opcode: 0x10, psn: 50, bytes: 8, syndrome: 0x1f, msn: 1 };
    expect(broken(audited(conversation([...CM, asked(4), asked(8), response])))).toEqual([63]);
    expect(broken(audited(conversation([...CM, asked(4), response])))).toEqual([62]);
  });

  it('is claimed without --at where IP identifications show that a copy was sent just now', () => {
    const packets = conversation([
      ...CM,
      ...[50, 51, 52, 53, 54, 55, 50].map((psn, i) => ({ ...send(psn), ipId: 300 + i })),
    ]);
    expect(broken(audited(packets, { rules: [51] }))).toEqual([51]);
  });

  it('is not claimed for a NAK that a newer one has overtaken', () => {
    const sent = [50, 51, 52, 53, 54, 55, 56].map((psn, i) => ({ ...send(psn), ipId: 300 + i }));
    const again = [53, 54, 55, 56].map((psn, i) => ({ ...send(psn), ipId: 307 + i }));
    const naks = [answer(53, 0x60, 3), answer(51, 0x60, 1)];
    expect(
      broken(audited(conversation([...CM, ...sent, ...naks, ...again]), { rules: [47], capturedAt: '10.77.0.1' })),
    ).toEqual([]);
  });
});
