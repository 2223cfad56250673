import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../../src/core/random.js';
import { FRAME_OK, FrameInfo, parseFrame } from '../../../../src/packet/frame.js';
import { checkIcrc, ICRC_BAD, ICRC_OK, IcrcFlow } from '../../../../src/packet/icrc.js';
import { isUdpChecksumGoodV6, writeUdpChecksumV6 } from '../../../../src/packet/udp.js';
import { FaultPlan } from '../../../../src/port/faults/fault-plan.js';
import { A, B, SwitchBench as Bench, C, IPS, roceFrame } from './traffic.js';

const withRules = (rules: string) => new Bench({ faults: FaultPlan.parse(rules, new SeededRandom(1)) }).introduce();
const psns = (frames: readonly Uint8Array[] = []) =>
  frames.map((bytes) => bytes[(bytes[14] >> 4 === 4 ? 42 : 62) + 11]);
const FLOW = new IcrcFlow(IPS[A], IPS[B], 0xc000, 4791);

function parsed(bytes: Uint8Array): FrameInfo {
  const info = new FrameInfo();
  expect(parseFrame(bytes, 0, bytes.length, info)).toBe(FRAME_OK); // the IPv4 checksum is right, too
  return info;
}

describe('actions of fault rules in a switch', () => {
  it.each([4, 6] as const)('mark: CE over IPv%i, with the ICRC as it was', (family) => {
    const bench = withRules('psn=2,mark');
    const send = (psn: number) => bench.pass(A, roceFrame(A, B, { psn, ecn: 2, dscp: 26, family })).b![0];
    expect(parsed(send(1))).toMatchObject({ ecn: 2, dscp: 26 });
    const marked = send(2);
    expect(parsed(marked)).toMatchObject({ ecn: 3, dscp: 26 });
    expect(marked.slice(-4)).toEqual(roceFrame(A, B, { psn: 2, family }).slice(-4));
    expect(bench.counters('b')).toMatchObject({ faults_marked: 1, tx_ecn_marked: 0 });
  });

  it.each([4, 6] as const)('bleach: no ECN over IPv%i, with the DSCP and ICRC as they were', (family) => {
    const bench = withRules('psn=2,bleach');
    const send = (psn: number) => bench.pass(A, roceFrame(A, B, { psn, ecn: 3, dscp: 26, family })).b![0];
    expect(parsed(send(1))).toMatchObject({ ecn: 3, dscp: 26 });
    const bleached = send(2);
    expect(bleached).toEqual(roceFrame(A, B, { psn: 2, ecn: 0, dscp: 26, family }));
    expect(bench.counters('b')).toMatchObject({ faults_bleached: 1, faults_marked: 0 });
  });

  it('rewrite: the field, with the ICRC right for it; a flooded copy by itself', () => {
    const bench = new Bench({ faults: FaultPlan.parse('a>b:psn=7,rewrite=psn,+1', new SeededRandom(1)) });
    const copies = bench.pass(A, roceFrame(A, B, { psn: 7 }));
    expect(psns(copies.b)).toEqual([8]);
    expect(psns(copies.c)).toEqual([7]);
    for (const [bytes] of [copies.b!, copies.c!]) {
      const { payloadOffset, payloadBytes, ipId } = parsed(bytes);
      expect(checkIcrc(FLOW, bytes, payloadOffset, payloadBytes, ipId)).toBe(ICRC_OK);
    }
    expect(bench.counters('b').faults_rewritten).toBe(1);
    expect(bench.counters('c').faults_rewritten).toBe(0);
  });

  it('trim: lengths and checksum follow, the ICRC is lost', () => {
    const bench = withRules('every=1,trim=20');
    const [bytes] = bench.pass(A, roceFrame(A, B, { psn: 7 })).b!;
    const { payloadOffset, payloadBytes, ipId } = parsed(bytes);
    expect([bytes.length, payloadBytes]).toEqual([payloadOffset + 20, 20]);
    expect(checkIcrc(FLOW, bytes, payloadOffset, payloadBytes, ipId)).toBe(ICRC_BAD);
    expect(bench.counters('b').faults_trimmed).toBe(1);
  });

  it.each(['rewrite=psn,+1', 'corrupt', 'trim=20'])(
    '%s: a UDP checksum over IPv6 is right for what is sent',
    (action) => {
      const frame = roceFrame(A, B, { family: 6 });
      writeUdpChecksumV6(frame, 14, 54);
      const [bytes] = withRules(`every=1,${action}`).pass(A, frame).b!;
      expect(bytes).not.toEqual(frame);
      expect(isUdpChecksumGoodV6(bytes, 14, 54)).toBe(true);
      const [untouched] = withRules(`every=2,${action}`).pass(A, frame).b!;
      expect(untouched).toEqual(frame);
    },
  );

  it('delay: the frame leaves at its time, others go by', () => {
    const bench = withRules('psn=1,delay=200us');
    const sent = (psn: number, nowNs: number) => psns(bench.pass(A, roceFrame(A, B, { psn }), nowNs).b);
    expect(sent(1, 1000)).toEqual([]);
    expect(bench.switch.nextDeadlineNs).toBe(201_000);
    expect(sent(2, 2000)).toEqual([2]);
    bench.switch.onDeadline(200_999);
    expect(psns(bench.drain(200_999).b)).toEqual([]);
    bench.switch.onDeadline(201_000);
    expect(bench.ready()).toContain(B);
    expect(psns(bench.drain(201_000).b)).toEqual([1]);
    expect(bench.switch.nextDeadlineNs).toBe(Number.POSITIVE_INFINITY);
    expect(bench.counters('b').faults_delayed).toBe(1);
    expect(bench.switch.bufferedPackets).toBe(0);
  });

  it('delay with duplicate: the copy goes at once', () => {
    const bench = withRules('psn=1,delay=200us,duplicate');
    expect(psns(bench.pass(A, roceFrame(A, B, { psn: 1 })).b)).toEqual([1]);
    bench.switch.onDeadline(200_000);
    expect(psns(bench.drain(200_000).b)).toEqual([1]);
  });

  it('loses and counts what it cannot hold', () => {
    const bench = new Bench({
      faults: FaultPlan.parse('every=1,rate=1bps', new SeededRandom(1)),
      bufferPackets: 8192,
    }).introduce();
    for (let n = 0; n < 4100; n++) bench.receive(A, roceFrame(A, B, { psn: 1 }));
    expect(bench.counters('b')).toMatchObject({ faults_delayed: 4096, tx_dropped_fault: 4 });
    expect(bench.switch.bufferedPackets).toBe(4096);
  });

  it('tells who wants to know of each strike', () => {
    const seen: string[] = [];
    const bench = new Bench({
      faults: FaultPlan.parse('a>b:psn=1:once;psn=2,mark', new SeededRandom(1)),
      onFault: ({ rule }, { ingress, egress, psn }) => seen.push(`${ingress}>${egress} ${psn}: ${rule}`),
    }).introduce();
    for (const psn of [1, 1, 2, 3]) bench.pass(A, roceFrame(A, B, { psn }));
    bench.pass(C, roceFrame(C, A, { psn: 2 }));
    expect(seen).toEqual(['a>b 1: a>b:psn=1:once', 'a>b 2: psn=2,mark', 'c>a 2: psn=2,mark']);
  });
});
