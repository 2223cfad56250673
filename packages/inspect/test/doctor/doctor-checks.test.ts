import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Dump } from '../../../../src/verbs/estats/dump-log.js';
import { createPair, type Pair, type PairOptions } from '../../../../test/support/pair.js';
import type { ArrivedClasses, CapturedArrivals } from '../../src/commands/doctor/arrivals.js';
import {
  checkDscp,
  checkEcn,
  checkIcrc,
  checkLoss,
  checkMtu,
  checkOrder,
  checkPort,
  checkRules,
  checkService,
} from '../../src/commands/doctor/checks.js';
import { checkFailure } from '../../src/commands/doctor/failed-endpoint.js';
import { AnswerTally } from '../../src/commands/doctor/path-probe.js';
import { checkTimeout, retryArithmetic } from '../../src/commands/doctor/retry-arithmetic.js';
import { pingSizes, type ServiceReport } from '../../src/commands/doctor/service-test.js';
import { audited, golden } from '../audit/golden.js';

describe('answers of RDMA CM', () => {
  const tallied = (ids: readonly number[], sent = 4) => {
    const tally = new AnswerTally();
    for (let i = 0; i < sent; i++) tally.sent(i * 1000);
    for (const id of ids) tally.answered(id, 10_000);
    return tally.report();
  };

  it('in order, and all of them', () => {
    const report = tallied([1, 2, 3, 4]);
    expect(report).toEqual({
      sent: 4,
      answered: 4,
      duplicates: 0,
      reordered: 0,
      rttNs: { min: 7000, median: 9000, p99: 10_000, max: 10_000 },
    });
    expect([checkLoss(report).verdict, checkOrder(report).verdict]).toEqual(['ok', 'ok']);
  });

  it('lost, late, twice, or to nothing that was asked', () => {
    const report = tallied([1, 3, 2, 2, 77]);
    expect(report).toMatchObject({ answered: 3, duplicates: 1, reordered: 1 });
    expect(checkLoss(report)).toMatchObject({
      verdict: 'failed',
      text: '1 of 4 round trips lost; 1 answers came twice (25.0 %)',
    });
    expect(checkOrder(report)).toMatchObject({ verdict: 'warning' });
  });

  it('one lost of a thousand is a warning, none at all is not tested', () => {
    expect(checkLoss({ ...tallied([]), sent: 1000, answered: 999 }).verdict).toBe('warning');
    expect(checkLoss(tallied([])).verdict).toBe('not tested');
  });
});

describe('the largest packet that passes', () => {
  const tested = (lostAt: number | undefined, counters: ServiceReport['counters'] = {}): ServiceReport => ({
    refusal: null,
    pathMtu: 4096,
    pings: pingSizes(4096, 8192).map((sizeBytes) => ({
      sizeBytes,
      outcome: lostAt !== undefined && sizeBytes >= lostAt ? ('lost' as const) : ('right' as const),
    })),
    failure: lostAt === undefined ? null : 'no answer for 3 s',
    counters,
  });

  it('is the path MTU if all pings come back', () => {
    expect(checkMtu(tested(undefined)).verdict).toBe('ok');
    expect(checkService(tested(undefined)).verdict).toBe('ok');
  });

  it('is the last size that came back', () => {
    const lost = checkMtu(tested(2048, { duplicate_request: 5 }));
    expect(lost).toMatchObject({ verdict: 'failed', advice: expect.stringContaining('path MTU to 1024 or less') });
    expect(lost.text).toContain('packets of 1024 bytes pass, packets of 2048 do not, towards the peer');
    expect(checkMtu(tested(2048)).text).toContain('in one of the directions');
    const { length } = tested(2048).pings;
    expect(checkMtu(tested(2048, { rx_read_requests: length })).text).toContain('towards this side');
    expect(checkMtu(tested(2048, { rx_read_requests: length - 1 })).text).toContain('in one of the directions');
  });

  it('is not known if the service takes only small texts, or loss is as likely', () => {
    const small = { ...tested(undefined), pings: [{ sizeBytes: 64, outcome: 'right' as const }] };
    expect(checkMtu(small).verdict).toBe('cannot tell');
    expect(checkMtu(tested(8192)).verdict).toBe('cannot tell');
  });

  it('is asked for with one packet of each path MTU, then with many', () => {
    expect(pingSizes(1024, 64)).toEqual([23, ...Array<number>(20).fill(64)]);
    expect(pingSizes(1024, 1024)).toEqual([23, 256, 512, 1024]);
    expect(new Set(pingSizes(4096, 8192))).toEqual(new Set([23, 256, 512, 1024, 2048, 4096, 8192]));
  });
});

describe('traffic classes', () => {
  const classes = (dscps: Record<number, number>, ecns: ArrivedClasses['ecns'] = [0, 0, 0, 0]) => ({ dscps, ecns });
  const nothing = classes({});
  const arrived = (management: ArrivedClasses, connections: ArrivedClasses = nothing): CapturedArrivals => ({
    management,
    connections,
    marksSent: 0,
    cnps: 0,
    audit: audited([]),
  });

  it('survive if the answers have the DSCP that was asked for', () => {
    expect(checkDscp(26, arrived(classes({ 26: 5 }, [5, 0, 0, 0])), true).verdict).toBe('ok');
    expect(
      checkDscp(26, arrived(classes({ 0: 5 }, [5, 0, 0, 0]), classes({ 26: 1 }, [1, 0, 0, 0])), true).verdict,
    ).toBe('ok');
  });

  it('may have been changed by anybody if not', () => {
    expect(checkDscp(26, arrived(classes({ 0: 5 }, [5, 0, 0, 0])), true).verdict).toBe('cannot tell');
    expect(checkDscp(26, arrived(classes({ 26: 5 }, [5, 0, 0, 0])), false).verdict).toBe('cannot tell');
    expect(checkDscp(26, arrived(nothing), true).verdict).toBe('not tested');
  });

  it('marks are a warning', () => {
    expect(checkEcn(arrived(classes({ 0: 5 }, [0, 0, 4, 1])), true)).toMatchObject({
      verdict: 'warning',
      text: expect.stringContaining('1 of 5 packets arrived marked'),
    });
    expect(checkEcn(arrived(classes({ 0: 5 }, [0, 0, 5, 0])), true).verdict).toBe('ok');
  });

  it('marks that bring no CNP are a warning; with CNPs the way back decides', () => {
    const marked = (cnps: number, ecns: ArrivedClasses['ecns']) =>
      checkEcn({ ...arrived(classes({ 0: 5 }, ecns)), marksSent: 8, cnps }, true);
    expect(marked(0, [0, 0, 5, 0])).toMatchObject({
      verdict: 'warning',
      text: expect.stringContaining('8 packets were sent marked (CE), and no CNP came: the network clears ECN'),
    });
    expect(marked(3, [0, 0, 5, 0])).toMatchObject({
      verdict: 'ok',
      text: expect.stringContaining('8 packets were sent marked, and 3 CNPs came: marks reach the peer'),
    });
    expect(marked(3, [5, 0, 0, 0]).verdict).toBe('cannot tell');
    expect(checkEcn({ ...arrived(classes({ 0: 5 }, [5, 0, 0, 0])), marksSent: 8, cnps: 0 }, false).verdict).toBe(
      'cannot tell',
    );
  });
});

describe('rules', () => {
  const sound = golden('send-rc-mtu1024-v4');
  const arrived = (packets: typeof sound): CapturedArrivals => {
    const none: ArrivedClasses = { dscps: {}, ecns: [0, 0, 0, 0] };
    return { management: none, connections: none, marksSent: 0, cnps: 0, audit: audited(packets) };
  };

  it('are kept by sound packets; an ICRC that is wrong is a fault of the way', () => {
    expect([checkIcrc(arrived(sound), true).verdict, checkRules(arrived(sound)).verdict]).toEqual(['ok', 'ok']);
    expect(checkIcrc(arrived(sound), false).verdict).toBe('cannot tell');
    const damaged = sound.map((packet, i) =>
      i === 3 ? { ...packet, bytes: packet.bytes.map((b, k) => (k === 60 ? b ^ 1 : b)) } : packet,
    );
    expect(checkIcrc(arrived(damaged), true)).toMatchObject({ verdict: 'failed', text: '1 packets had a wrong ICRC' });
  });
});

describe('timeouts', () => {
  it('are added up', () => {
    expect(retryArithmetic({ timeout: 14, retryCount: 7 })).toEqual({
      timeout: 14,
      retryCount: 7,
      timeoutNs: 67_108_864,
      shortestNs: 536_870_912,
      longestNs: 2_147_483_648,
    });
    expect(retryArithmetic({ timeout: 0, retryCount: 7 }).shortestNs).toBeNull();
  });

  it('must fit the path', () => {
    expect(checkTimeout({ timeout: 14, retryCount: 7 }, 1e6).verdict).toBe('ok');
    const short = checkTimeout({ timeout: 8, retryCount: 7 }, 1e6);
    expect(short).toMatchObject({ verdict: 'warning', advice: 'set timeout 10 or more' });
    expect(checkTimeout({ timeout: 10, retryCount: 7 }, 1e6).verdict).toBe('ok');
    expect(checkTimeout({ timeout: 0, retryCount: 7 }, undefined).verdict).toBe('warning');
    expect(checkTimeout({ timeout: 22, retryCount: 7 }, undefined).text).toContain('a dead peer is noticed late');
  });
});

it('a port is open unless ICMP says otherwise', () => {
  expect((['silent', 'refused', 'unreachable'] as const).map((answer) => checkPort(answer).verdict)).toEqual([
    'ok',
    'failed',
    'failed',
  ]);
});

describe('a connection that has failed', () => {
  function write(pair: Pair, bytes: number, rkeyError = 0): void {
    const { a, b } = pair;
    const to = { remoteAddr: b.mr.addr, rkey: b.mr.rkey + rkeyError };
    a.qp.postSend({ opcode: 'RDMA_WRITE', sges: [a.mr.sge(0, bytes)], ...to });
  }

  async function failureOf(
    options: PairOptions,
    work: (pair: Pair) => void,
  ): Promise<{ text: string; advice?: string }> {
    const pair = await createPair({ estats: {}, mtu: 1024, attrA: { timeout: 8, retryCnt: 3 }, ...options });
    work(pair);
    for (let n = 0; n < 5; n++) await nextTurn(); // the NIC's answer to the dump's questions
    const dumps: readonly Dump[] = pair.a.device.estats!.dumpLog.dumps;
    return checkFailure(dumps.find(({ reason }) => reason === 'error')!);
  }

  const one =
    (bytes: number, rkeyError = 0) =>
    (pair: Pair) => {
      write(pair, bytes, rkeyError);
      pair.completions(pair.a.cq, 1);
    };

  it('to a peer that has never answered', async () => {
    const { text } = await failureOf({ faults: 'a>b:random=1' }, one(8));
    expect(text).toContain(
      'RETRY_EXC_ERR. PSN 0x000100 (RDMA_WRITE_ONLY, 40 bytes) was sent 4 times. Nothing was heard',
    );
    expect(text).toContain('The peer has never answered.');
  });

  it('to a peer that fell silent', async () => {
    const { text } = await failureOf({ faults: 'a>b:psn=0x101' }, (pair) => {
      one(8)(pair);
      one(8)(pair);
    });
    expect(text).toMatch(
      /PSN 0x000101 .* was sent 4 times\. Last heard .* before: ACKNOWLEDGE \(ACK\) for PSN 0x000100\. The peer fell silent/,
    );
  });

  it('because of a packet that is too large for the way', async () => {
    const { text } = await failureOf({ faults: 'a>b:psn=0x101' }, (pair) => {
      one(8)(pair);
      write(pair, 1000);
      pair.b.qp.postSend({
        opcode: 'RDMA_WRITE',
        sges: [pair.b.mr.sge(0, 8)],
        remoteAddr: pair.a.mr.addr,
        rkey: pair.a.mr.rkey,
      });
      for (let i = 0; i < 3; i++) write(pair, 8); // behind the gap: the peer asks for it
      pair.completions(pair.a.cq, 1);
    });
    expect(text).toContain('The peer lives, but this packet does not arrive; the largest one that did has 40 bytes.');
  });

  it('because of a wrong key', async () => {
    const { text, advice } = await failureOf({}, one(8, 1));
    expect(text).toContain('REM_ACCESS_ERR');
    expect(advice).toContain('compare remoteAddr, length and rkey');
  });
});
