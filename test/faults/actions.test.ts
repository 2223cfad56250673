import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';
import { checkIcrc, ICRC_BAD, ICRC_OK, IcrcFlow, sealIcrc } from '../../src/packet/icrc.js';
import { CNP, RC_ACK, RC_FETCH_ADD, RC_SEND_ONLY, RC_WRITE_FIRST } from '../../src/packet/opcode.js';
import { emitRoce, PARSE_OK, parseRoce, type RoceFields, RocePacket } from '../../src/packet/roce.js';
import { changePacket } from '../../src/port/faults/actions.js';
import { FaultPlan, type FaultVerdict } from '../../src/port/faults/fault-plan.js';
import { newFaultSubject, readBth } from '../../src/port/faults/fault-subject.js';
import { parseFaultRules } from '../../src/port/faults/grammar.js';
import { actionsOf } from './verdicts.js';

const FLOW = new IcrcFlow(IpAddress.parse('10.0.0.1'), IpAddress.parse('10.0.0.2'), 0xc000, 4791);
const IP_ID = 77;

/** A sealed packet, BTH to ICRC. */
function packet(fields: Partial<RoceFields> = {}, payloadBytes = 16): Uint8Array {
  const body = emitRoce({ opcode: RC_SEND_ONLY, destQpn: 0x11, psn: 5, ...fields }, new Uint8Array(payloadBytes));
  const bytes = new Uint8Array(body.length + 4);
  bytes.set(body);
  sealIcrc(FLOW, bytes, 0, bytes.length, IP_ID, undefined);
  return bytes;
}

function strike(rule: string, bytes: Uint8Array, nowNs = 0, plan = FaultPlan.parse(rule, new SeededRandom(1))) {
  const subject = newFaultSubject();
  readBth(subject, bytes, 0, bytes.length);
  return plan.decide(subject, nowNs);
}

/** Does what a verdict says, and returns the new length. */
function carried(verdict: FaultVerdict | undefined, bytes: Uint8Array): number {
  const packet = { bytes, offset: 0, length: bytes.length, ecn: 0, dscp: 0 };
  if (verdict !== undefined) changePacket(verdict.actions, packet);
  return packet.length;
}

/** The packet as the rule leaves it. */
function changed(rule: string, original: Uint8Array): { bytes: Uint8Array; parsed: RocePacket; icrc: number } {
  const bytes = original.slice();
  const left = carried(strike(rule, bytes), bytes);
  const parsed = new RocePacket();
  expect(parseRoce(bytes, 0, left, parsed)).toBe(PARSE_OK);
  return { bytes: bytes.subarray(0, left), parsed, icrc: checkIcrc(FLOW, bytes, 0, left, IP_ID) };
}

describe('actions of fault rules', () => {
  it.each([
    ['psn=5', 'drop'],
    ['psn=5,drop', 'drop'],
    ['every=1,corrupt', 'corrupt'],
    ['opcode=SEND_ONLY,duplicate', 'duplicate'],
    ['psn=0-9,reorder', 'reorder'],
    ['rpsn=0,delay=200us:once', 'delay'],
    ['burst=1,0,mark', 'mark'],
    ['burst=1,0,1,mark', 'mark'],
    ['random=1,trim', 'trim'],
    ['every=1,rewrite=psn,+1:x1', 'rewrite'],
    ['every=1,rate=1Gbps', 'rate'],
    ['every=1,mark,delay=1ms,10us,duplicate', 'mark duplicate delay'],
    ['corrupt=1', 'corrupt'],
    ['duplicate=1,mark', 'mark duplicate'],
    ['reorder=1,7,mark', 'mark reorder'],
    ['every=1,bleach', 'bleach'],
    ['every=1,duplicate,dscp=0x2e', 'dscp duplicate'],
    ['psn=6,mark', ''],
  ])('%s', (rule, names) => {
    expect(actionsOf(strike(rule, packet()))).toBe(names);
  });

  it.each([
    ['psn=5,lose', 'psn=16'],
    ['every=1,delay', 'delay=TIME[,JITTER]'],
    ['every=1,delay=5', 'delay=TIME[,JITTER]'],
    ['every=1,delay=1ms,2ms', 'jitter above its delay'],
    ['every=1,delay=1ms,1us,1us', 'delay=TIME[,JITTER]'],
    ['every=1,reorder=0', 'reorder[=BEHIND]'],
    ['every=1,mark=1', 'needs the form mark'],
    ['every=1,mark,x', 'needs the form mark'],
    ['every=1,trim=11', 'trim[=BYTES]'],
    ['every=1,dscp', 'needs the form dscp=N'],
    ['every=1,dscp=64', 'needs the form dscp=N'],
    ['every=1,dscp=1,2', 'needs the form dscp=N'],
    ['every=1,rate=0bps', 'rate=100Mbps'],
    ['every=1,rate=fast', "'fast' is not a rate"],
    ['every=1,rewrite=psn', 'rewrite=FIELD,VALUE'],
    ['every=1,rewrite=psm,1', "unknown field 'psm'"],
    ['every=1,rewrite=psn,0x1000000', 'at most 24 bits'],
    ['every=1,rewrite=psn,one', "by 'one'"],
    ['every=1,drop,mark', 'drops the packet and does more'],
    ['every=1,bleach,mark', 'marks the packet and clears the mark'],
    ['every=1,reorder,delay=1ms', 'wait for others and for time'],
  ])('refuses %s', (rule, problem) => {
    expect(() => parseFaultRules(rule)).toThrow(`fault rule '${rule}'`);
    expect(() => parseFaultRules(rule)).toThrow(problem);
    expect(() => parseFaultRules(rule)).toThrow(/with actions: drop; .*rewrite=FIELD,VALUE/);
  });

  it('delay within its jitter, evenly', () => {
    const plan = FaultPlan.parse('every=1,delay=100us,40us', new SeededRandom(1));
    const delays = Array.from({ length: 4000 }, () => strike('', packet(), 0, plan)!.delayNs);
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(60_000);
    expect(Math.max(...delays)).toBeLessThanOrEqual(140_000);
    expect(delays.filter((ns) => ns < 100_000).length / delays.length).toBeCloseTo(0.5, 1);
    expect(strike('every=1,delay=100us', packet())!.delayNs).toBe(100_000);
  });

  it('a rate lets packets go one after another, and owes nothing after a silence', () => {
    const bytes = packet(); // 32 bytes: 2.56 us at 100 Mb/s
    const plan = FaultPlan.parse('every=1,rate=100Mbps', new SeededRandom(1));
    const at = (nowNs: number) => nowNs + strike('', bytes, nowNs, plan)!.delayNs;
    expect([at(0), at(0), at(1000), at(1e6)]).toEqual([2560, 5120, 7680, 1e6 + 2560]);
  });
});

describe('rewrite', () => {
  it.each([
    ['psn,+1', RC_SEND_ONLY, { psn: 6 }],
    ['psn,-6', RC_SEND_ONLY, { psn: 0xffffff }],
    ['psn,0x123456', RC_SEND_ONLY, { psn: 0x123456 }],
    ['qpn,0x42', RC_SEND_ONLY, { destQpn: 0x42 }],
    ['pkey,0x7fff', RC_SEND_ONLY, { pkey: 0x7fff }],
    ['solicited,1', RC_SEND_ONLY, { solicited: true }],
    ['ackreq,1', RC_SEND_ONLY, { ackReq: true }],
    ['migreq,1', RC_SEND_ONLY, { migReq: true }],
    ['pad,2', RC_SEND_ONLY, { padBytes: 2 }],
    ['fecn,1', RC_SEND_ONLY, { fecn: true }],
    ['becn,1', CNP, { becn: true }],
    ['dmalen,-1', RC_WRITE_FIRST, { dmaLength: 0xffffffff }],
    ['va,+0x100000000', RC_WRITE_FIRST, { vaHigh: 1, vaLow: 0 }],
    ['rkey,0xdeadbeef', RC_WRITE_FIRST, { rkey: 0xdeadbeef }],
    ['syndrome,0x61', RC_ACK, { syndrome: 0x61 }],
    ['msn,+2', RC_ACK, { msn: 2 }],
    ['swap,0x0123456789abcdef', RC_FETCH_ADD, { swapHigh: 0x01234567, swapLow: 0x89abcdef }],
    ['compare,-1', RC_FETCH_ADD, { compareHigh: 0xffffffff, compareLow: 0xffffffff }],
  ])('%s of opcode %i changes that field alone, and the ICRC is right', (change, opcode, expected) => {
    const original = packet({ opcode }, opcode === RC_SEND_ONLY ? 16 : 0);
    const before = new RocePacket();
    parseRoce(original, 0, original.length, before);
    const { parsed, icrc } = changed(`every=1,rewrite=${change}`, original);
    expect(icrc).toBe(ICRC_OK);
    const fields = (from: RocePacket) => ({ ...from, payloadBytes: from.payloadBytes + from.padBytes, padBytes: 0 });
    const { padBytes, ...rest } = { padBytes: 0, ...expected };
    expect(parsed.padBytes).toBe(padBytes);
    expect(fields(parsed)).toEqual({ ...fields(before), ...rest });
  });

  it('several in one rule', () => {
    const { parsed, icrc } = changed('every=1,rewrite=psn,+1,rewrite=qpn,7', packet());
    expect(parsed).toMatchObject({ psn: 6, destQpn: 7 });
    expect(icrc).toBe(ICRC_OK);
  });

  it('leaves a wrong ICRC wrong', () => {
    const damaged = packet();
    damaged[20] ^= 1;
    expect(changed('every=1,rewrite=psn,+1', damaged).icrc).toBe(ICRC_BAD);
  });

  it('strikes only packets that have the field', () => {
    const plan = FaultPlan.parse('every=2,rewrite=dmalen,0', new SeededRandom(1));
    const write = packet({ opcode: RC_WRITE_FIRST });
    const names = [write, packet(), packet(), write].map((bytes) => actionsOf(strike('', bytes, 0, plan)));
    expect(names).toEqual(['', '', '', 'rewrite']);
  });

  it('and corrupt: the bit is flipped behind the rewriting', () => {
    expect(changed('every=1,rewrite=psn,+1,corrupt', packet({}, 900)).icrc).toBe(ICRC_BAD);
  });
});

describe('trim', () => {
  it('cuts what is longer, whose ICRC is lost, and leaves alone what is not', () => {
    const long = changed('every=1,trim=64', packet({}, 1024));
    expect(long.bytes.length).toBe(64);
    expect(long.icrc).toBe(ICRC_BAD);
    const short = changed('every=1,trim=64', packet({}, 16));
    expect(short.bytes).toEqual(packet({}, 16));
    expect(short.icrc).toBe(ICRC_OK);
  });

  it('flips a bit of what is left', () => {
    const plan = FaultPlan.parse('every=1,trim=16,corrupt', new SeededRandom(1));
    const whole = packet({}, 1024);
    for (let n = 0; n < 200; n++) {
      const bytes = whole.slice();
      expect(carried(strike('', bytes, 0, plan), bytes)).toBe(16);
      const flipped = bytes.findIndex((byte, i) => byte !== whole[i]);
      expect(flipped).toBeGreaterThanOrEqual(0);
      expect(flipped).toBeLessThan(16);
    }
  });
});
