import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import { CNP, RC_ACK, RC_READ_RESPONSE_MIDDLE, RC_SEND_ONLY, UD_SEND_ONLY } from '../../src/packet/opcode.js';
import { changePacket } from '../../src/port/faults/actions.js';
import { FaultPlan } from '../../src/port/faults/fault-plan.js';
import { newFaultSubject } from '../../src/port/faults/fault-subject.js';
import { parseFaultRules } from '../../src/port/faults/grammar.js';
import { actionsOf } from './verdicts.js';

interface Packet {
  ingress?: string;
  egress?: string;
  ipId?: number;
  opcode?: number;
  psn?: number;
  destQpn?: number;
  bytes?: number;
}

const DEFAULTS = { ingress: 'a', egress: 'b', ipId: -1, opcode: RC_SEND_ONLY, psn: 0, destQpn: 0x11, bytes: 1052 };

/** The actions a plan takes on a sequence of packets. */
function actions(rules: string, packets: readonly Packet[], seed = 1): string[] {
  const plan = FaultPlan.parse(rules, new SeededRandom(seed));
  const subject = newFaultSubject();
  return packets.map((packet) => actionsOf(plan.decide(Object.assign(subject, DEFAULTS, packet), 0)));
}

const same = (count: number): Packet[] => Array.from({ length: count }, () => ({}));
const numbered = (count: number): Packet[] => Array.from({ length: count }, (_, i) => ({ ipId: i & 0xffff, psn: i }));
const share = (list: readonly string[], action: string): number =>
  list.filter((a) => a === action).length / list.length;

describe('fault rules', () => {
  it('without a rule that matches, nothing happens', () => {
    expect(new Set(actions('psn=99', same(1000)))).toEqual(new Set(['']));
    const plan = new FaultPlan([], new SeededRandom(1));
    expect(actionsOf(plan.decide(newFaultSubject(), 0))).toBe('');
  });

  it('can be replaced while packets flow, and then begin anew', () => {
    const plan = FaultPlan.parse('every=2', new SeededRandom(1));
    const decide = () => actionsOf(plan.decide(Object.assign(newFaultSubject(), DEFAULTS), 0));
    expect([decide(), decide(), decide()]).toEqual(['', 'drop', '']);
    plan.replaceRules(parseFaultRules('every=3'));
    expect([decide(), decide(), decide()]).toEqual(['', '', 'drop']);
    expect(plan.hits).toEqual([{ rule: 'every=3', hits: 1 }]);
    plan.replaceRules([]);
    expect([decide(), decide(), decide()]).toEqual(['', '', '']);
  });

  it('every=n drops exactly the n-th, 2n-th, ...', () => {
    const list = actions('every=4', same(12));
    expect(list.flatMap((action, i) => (action === 'drop' ? [i] : []))).toEqual([3, 7, 11]);
  });

  it('every=1 drops all', () => {
    expect(share(actions('every=1', same(10)), 'drop')).toBe(1);
  });

  it('ip-id-lsb drops exactly one in 256 of sequential identifications, across their wrap', () => {
    const list = actions('ip-id-lsb=0xff', numbered(2 * 65536));
    expect(list.filter((action) => action === 'drop').length).toBe(512);
    expect(list[255]).toBe('drop');
    expect(list[65535]).toBe('drop');
    expect(list[256]).toBe('');
  });

  it('ip-id-lsb leaves packets without identification alone', () => {
    expect(share(actions('ip-id-lsb=0xff', same(1000)), '')).toBe(1);
  });

  it('random drops at its rate, each packet by itself', () => {
    const list = actions('random=0.1', same(100_000));
    expect(share(list, 'drop')).toBeGreaterThan(0.097);
    expect(share(list, 'drop')).toBeLessThan(0.103);
    const pairs = list.filter((action, i) => action === 'drop' && list[i + 1] === 'drop').length;
    expect(pairs / list.length).toBeGreaterThan(0.008);
    expect(pairs / list.length).toBeLessThan(0.012);
  });

  it('random=0 drops nothing, random=1 everything, fractions are understood', () => {
    expect(share(actions('random=0', same(1000)), 'drop')).toBe(0);
    expect(share(actions('random=1', same(1000)), 'drop')).toBe(1);
    expect(share(actions('random=1/4', same(40_000)), 'drop')).toBeCloseTo(0.25, 1);
  });

  it('burst has the loss share and the burst length of its Markov chain', () => {
    const list = actions('burst=0.01,0.25', same(200_000));
    const expected = 0.01 / (0.01 + 0.25);
    expect(share(list, 'drop')).toBeGreaterThan(expected * 0.9);
    expect(share(list, 'drop')).toBeLessThan(expected * 1.1);
    const bursts = list.filter((action, i) => action === 'drop' && list[i - 1] !== 'drop').length;
    const meanBurst = list.filter((action) => action === 'drop').length / bursts;
    expect(meanBurst).toBeGreaterThan(3.7);
    expect(meanBurst).toBeLessThan(4.3);
  });

  it('burst loses only its share of the bad packets', () => {
    const expected = (0.01 / (0.01 + 0.25)) * 0.5;
    const lost = share(actions('burst=0.01,0.25,0.5', same(200_000)), 'drop');
    expect(lost).toBeGreaterThan(expected * 0.85);
    expect(lost).toBeLessThan(expected * 1.15);
  });

  it('psn names one PSN, a range, and a range across the wrap', () => {
    const psns = [0xfffffe, 0xffffff, 0, 1, 15, 16, 17];
    const dropped = (rule: string) =>
      actions(
        rule,
        psns.map((psn) => ({ psn })),
      ).flatMap((action, i) => (action === 'drop' ? [psns[i]] : []));
    expect(dropped('psn=0x10')).toEqual([16]);
    expect(dropped('psn=15-16')).toEqual([15, 16]);
    expect(dropped('psn=0xffffff-1')).toEqual([0xffffff, 0, 1]);
  });

  it('a limited rule strikes so often and no more', () => {
    const packets = Array.from({ length: 6 }, () => ({ psn: 16 }));
    expect(actions('psn=16:once', packets)).toEqual(['drop', '', '', '', '', '']);
    expect(actions('psn=16:x2', packets)).toEqual(['drop', 'drop', '', '', '', '']);
    expect(actions('psn=16', packets)).toEqual(Array(6).fill('drop'));
  });

  it('opcode takes numbers, names, and names with their transport', () => {
    const packets = [RC_SEND_ONLY, UD_SEND_ONLY, RC_ACK, CNP].map((opcode) => ({ opcode }));
    const [D, P] = ['drop', ''];
    expect(actions('opcode=0x11', packets)).toEqual([P, P, D, P]);
    expect(actions('opcode=17', packets)).toEqual([P, P, D, P]);
    expect(actions('opcode=ACKNOWLEDGE', packets)).toEqual([P, P, D, P]);
    expect(actions('opcode=send_only', packets)).toEqual([D, D, P, P]);
    expect(actions('opcode=UD SEND_ONLY', packets)).toEqual([P, D, P, P]);
    expect(actions('opcode=RC_SEND_ONLY', packets)).toEqual([D, P, P, P]);
    expect(actions('opcode=CNP', packets)).toEqual([P, P, P, D]);
  });

  it('a direction confines a rule, and the rule counts only that direction', () => {
    const packets = [
      { ingress: 'a', egress: 'b' },
      { ingress: 'b', egress: 'a' },
      { ingress: 'a', egress: 'b' },
      { ingress: 'a', egress: 'c' },
    ];
    expect(actions('a>b:every=2', packets)).toEqual(['', '', 'drop', '']);
    expect(actions('a>*:every=1', packets)).toEqual(['drop', '', 'drop', 'drop']);
    expect(actions('*>a:every=1', packets)).toEqual(['', 'drop', '', '']);
    expect(actions('every=1', packets)).toEqual(Array(4).fill('drop'));
  });

  it('a direction that names no place of this network is refused, for it would never match', () => {
    const parse = (text: string) => FaultPlan.parse(text, new SeededRandom(1), ['a', 'b']);
    expect(() => parse('a>b:every=2;*>a:psn=7;every=3')).not.toThrow();
    expect(() => parse('every=2;c>b:psn=7')).toThrow("fault rule 'c>b:psn=7' would never match: there is no 'c'");
  });

  it('the first rule that strikes decides, and each rule counts its own hits', () => {
    const plan = FaultPlan.parse('psn=5; duplicate=1:x3 ;every=2', new SeededRandom(1));
    const subject = Object.assign(newFaultSubject(), DEFAULTS);
    const taken = [5, 1, 2, 3, 4, 6].map((psn) => actionsOf(plan.decide(Object.assign(subject, { psn }), 0)));
    expect(taken).toEqual(['drop', 'duplicate', 'duplicate', 'duplicate', '', 'drop']);
    expect(plan.hits).toEqual([
      { rule: 'psn=5', hits: 1 },
      { rule: 'duplicate=1:x3', hits: 3 },
      { rule: 'every=2', hits: 1 },
    ]);
  });

  it('reorder says how many packets overtake', () => {
    const plan = FaultPlan.parse('reorder=1,7', new SeededRandom(1));
    const verdict = plan.decide(newFaultSubject(), 0);
    expect([actionsOf(verdict), verdict?.behind]).toEqual(['reorder', 7]);
  });

  it('corrupt flips one bit that the ICRC covers, anywhere in the packet', () => {
    const plan = FaultPlan.parse('corrupt=1', new SeededRandom(1));
    const subject = Object.assign(newFaultSubject(), DEFAULTS, { bytes: 16 });
    const touched = new Set<number>();
    for (let i = 0; i < 5000; i++) {
      const verdict = plan.decide(subject, 0)!;
      expect(actionsOf(verdict)).toBe('corrupt');
      const bytes = new Uint8Array(20);
      changePacket(verdict.actions, { bytes, offset: 2, length: 16, ecn: 0, dscp: 0 });
      const flipped = [...bytes].flatMap((byte, at) => [...byte.toString(2).replaceAll('0', '')].map(() => at));
      expect(flipped).toHaveLength(1);
      touched.add(flipped[0]);
    }
    expect([...touched].sort((a, b) => a - b)).toEqual([2, 3, 4, 5, ...Array.from({ length: 11 }, (_, i) => 7 + i)]);
  });

  it('the same seed gives the same verdicts, another seed others', () => {
    const rules = 'random=0.2;burst=0.1,0.5;corrupt=0.1;reorder=0.1';
    expect(actions(rules, same(500), 7)).toEqual(actions(rules, same(500), 7));
    expect(actions(rules, same(500), 7)).not.toEqual(actions(rules, same(500), 8));
  });

  it('a rule in front that never strikes does not change what the others do', () => {
    expect(actions('psn=1;random=0.2', same(500))).toEqual(actions('random=0.2', same(500)));
  });

  it('two equal rules draw numbers of their own', () => {
    expect(share(actions('random=0.5;random=0.5', same(20_000)), 'drop')).toBeCloseTo(0.75, 1);
  });
});

describe('fault rule grammar', () => {
  it.each([
    ['', 'not of the form'],
    ['random', 'not of the form'],
    ['random=0.1:', 'not of the form'],
    ['>b:random=0.1', 'not of the form'],
    ['lose=0.1', "the unknown kind 'lose'"],
    ['random=2', 'random=0.004'],
    ['random=-1', 'random=0.004'],
    ['random=1/0', 'random=0.004'],
    ['random=0.1,0.2', 'random=0.004'],
    ['every=0', 'every=256'],
    ['every=2.5', 'every=256'],
    ['ip-id-lsb=256', 'ip-id-lsb=0xff'],
    ['burst=0.1', 'burst=P_GOOD_BAD'],
    ['burst=0.1,0.2,0.3,0.4', 'burst=P_GOOD_BAD'],
    ['psn=0x1000000', 'psn=16'],
    ['psn=1-2-3', 'psn=16'],
    ['psn=1@0', 'psn=16'],
    ['psn=1@2@3', 'psn=16'],
    ['rpsn=x', 'rpsn=16'],
    ['rpsn=0x1000000', 'rpsn=16'],
    ['opcode=NOSUCH', 'opcode=ACKNOWLEDGE'],
    ['reorder=0.1,0', 'reorder=0.001'],
    ['reorder=0.1,1025', 'reorder=0.001'],
    ['psn=1:twice', "limited by 'twice'"],
    ['psn=1:x0', "limited by 'x0'"],
  ])('refuses %j and names it', (text, problem) => {
    expect(() => parseFaultRules(text)).toThrow(problem);
    expect(() => parseFaultRules(text)).toThrow(`fault rule '${text}'`);
    expect(() => parseFaultRules(text)).toThrow(/known rules: ip-id-lsb=0xff; every=256; .*reorder/);
  });

  it('names the bad rule of several', () => {
    expect(() => parseFaultRules('every=2;oops=1;random=0.1')).toThrow("fault rule 'oops=1'");
  });

  it('throws nothing but its own error, whatever the text', () => {
    const pieces = fc.constantFrom(
      'a',
      '>',
      ':',
      '=',
      ',',
      ';',
      'psn',
      'random',
      'x2',
      'once',
      '0x',
      '1',
      '.',
      '-',
      ' ',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        try {
          parseFaultRules(parts.join(''));
        } catch (error) {
          expect(error).toMatchObject({ code: 'ERR_ROCE_MALFORMED' });
        }
      }),
      { numRuns: 3000 },
    );
  });
});

describe('PSNs from the start of a connection', () => {
  const sends = (start: number, count: number, destQpn = 0x11): Packet[] =>
    Array.from({ length: count }, (_, i) => ({ psn: (start + i) & 0xffffff, destQpn }));
  const struck = (rules: string, packets: readonly Packet[]) =>
    actions(rules, packets).flatMap((action, i) => (action === 'drop' ? [i] : []));

  it('strike whatever the start PSN is, across its wrap', () => {
    for (const start of [0, 0x123456, 0xfffffe]) {
      expect(struck('rpsn=3', sends(start, 8))).toEqual([3]);
      expect(struck('rpsn=2-4', sends(start, 8))).toEqual([2, 3, 4]);
      expect(struck('rpsn=0', sends(start, 8))).toEqual([0]);
    }
    expect(struck('psn=3', sends(0x123456, 8))).toEqual([]); // which is why there is rpsn
  });

  it('are counted for each queue pair and each direction by itself', () => {
    const mixed = [...sends(100, 4, 1), ...sends(900, 4, 2), ...sends(50, 4, 1).map((p) => ({ ...p, ingress: 'b' }))];
    expect(struck('rpsn=1', mixed)).toEqual([1, 5, 9]);
    expect(struck('a>b:rpsn=1', mixed)).toEqual([1, 5]);
  });

  it('leave ACKs and datagrams alone, and count READ responses from the first', () => {
    const others = [RC_ACK, UD_SEND_ONLY, CNP].map((opcode) => ({ opcode, psn: 7 }));
    expect(struck('rpsn=0-0xffffff', others)).toEqual([]);
    const responses = sends(500, 3).map((packet) => ({ ...packet, opcode: RC_READ_RESPONSE_MIDDLE }));
    expect(struck('rpsn=2', [...sends(9, 2), ...responses])).toEqual([4]);
  });

  it('psn=16@2 strikes the second transmission only, and so does rpsn', () => {
    const three = [{ psn: 16 }, { psn: 17 }, { psn: 16 }, { psn: 16 }];
    expect(struck('psn=16@2', three)).toEqual([2]);
    expect(struck('psn=16@1', three)).toEqual([0]);
    expect(struck('psn=16@4', three)).toEqual([]);
    expect(struck('rpsn=0-1@2', [...three, { psn: 17 }])).toEqual([2, 4]);
    expect(struck('rpsn=0:x2', three)).toEqual([0, 2]); // a packet and its first retransmission
  });
});
