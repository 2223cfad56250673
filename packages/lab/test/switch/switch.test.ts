import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { randomInt, SeededRandom } from '../../../../src/core/random.js';
import { BROADCAST_MAC, parseMac } from '../../../../src/packet/ethernet.js';
import { checkIcrc, ICRC_BAD, ICRC_OK, IcrcFlow } from '../../../../src/packet/icrc.js';
import { FaultPlan } from '../../../../src/port/faults/fault-plan.js';
import { MacTable, macNumber } from '../../src/switch/mac-table.js';
import { Switch, type SwitchOptions } from '../../src/switch/switch.js';
import type { SwitchPortCounters } from '../../src/switch/switch-counters.js';
import { A, B, SwitchBench as Bench, C, plainFrame as frame, IPS, MACS, ROCE_OFFSET, roceFrame } from './traffic.js';

describe('switch', () => {
  it('floods what it does not know, but never back', () => {
    const sent = frame(MACS[B], MACS[A], 7);
    expect(new Bench().pass(A, sent)).toEqual({ b: [sent], c: [sent], d: [sent] });
  });

  it('learns from the sender and forwards to that port alone', () => {
    const bench = new Bench();
    bench.pass(A, frame(MACS[B], MACS[A]));
    const answer = frame(MACS[A], MACS[B], 9);
    expect(bench.pass(B, answer)).toEqual({ a: [answer] });
    expect(Object.keys(bench.pass(A, frame(MACS[B], MACS[A])))).toEqual(['b']);
  });

  it('follows a station that moves', () => {
    const bench = new Bench().introduce();
    bench.pass(C, frame(BROADCAST_MAC, MACS[A]));
    expect(Object.keys(bench.pass(B, frame(MACS[A], MACS[B])))).toEqual(['c']);
  });

  it('forgets a station that has been silent, and keeps one that speaks', () => {
    const ageNs = 1000;
    const bench = new Bench({ macAgeNs: ageNs });
    bench.pass(A, frame(BROADCAST_MAC, MACS[A]), 0);
    expect(Object.keys(bench.pass(B, frame(MACS[A], MACS[B]), 1000))).toEqual(['a']);
    expect(Object.keys(bench.pass(B, frame(MACS[A], MACS[B]), 1001))).toEqual(['a', 'c', 'd']);
    bench.pass(A, frame(BROADCAST_MAC, MACS[A]), 1200);
    expect(Object.keys(bench.pass(B, frame(MACS[A], MACS[B]), 2200))).toEqual(['a']);
  });

  it('floods broadcast and multicast even when it knows everybody', () => {
    const bench = new Bench().introduce();
    expect(Object.keys(bench.pass(B, frame(BROADCAST_MAC, MACS[B])))).toEqual(['a', 'c', 'd']);
    expect(Object.keys(bench.pass(B, frame(parseMac('33:33:ff:00:00:01'), MACS[B])))).toEqual(['a', 'c', 'd']);
  });

  it('does not send a frame back where it came from', () => {
    const bench = new Bench().introduce();
    expect(bench.pass(A, frame(MACS[A], MACS[A]))).toEqual({});
    expect(bench.counters('a').rx_dropped_same_port).toBe(1);
  });

  it.each([
    ['rx_dropped_too_short', new Uint8Array(13)],
    ['rx_dropped_too_long', new Uint8Array(9235)],
    ['rx_dropped_source_multicast', frame(MACS[B], BROADCAST_MAC)],
    ['rx_dropped_link_local', frame(parseMac('01:80:c2:00:00:01'), MACS[A])],
  ] as const)('drops and counts %s', (counter, bytes) => {
    const bench = new Bench();
    expect(bench.pass(A, bytes)).toEqual({});
    expect(bench.counters('a')[counter]).toBe(1);
  });

  it('reads frames out of the middle of an array', () => {
    const bench = new Bench().introduce();
    const sent = roceFrame(A, B, { psn: 1 });
    const slab = new Uint8Array(400).fill(0xee);
    slab.set(sent, 100);
    bench.switch.receive(A, slab, 100, sent.length, 0);
    expect(bench.drain()).toEqual({ b: [sent] });
  });

  it('passes tags unread', () => {
    const bench = new Bench().introduce();
    const tagged = frame(MACS[B], MACS[A]);
    tagged.set([0x81, 0x00, 0x60, 0x05], 12);
    expect(bench.pass(A, tagged)).toEqual({ b: [tagged] });
  });

  it('drops at the tail of a full queue, keeps the order of the rest, and recovers', () => {
    const bench = new Bench({ queuePackets: 3 }).introduce();
    const sent = [1, 2, 3, 4, 5].map((mark) => frame(MACS[B], MACS[A], mark));
    for (const bytes of sent) bench.switch.receive(A, bytes, 0, bytes.length, 0);
    expect(bench.switch.queued(B)).toBe(3);
    expect(bench.counters('b').tx_dropped_queue_full).toBe(2);
    expect(bench.drain()).toEqual({ b: sent.slice(0, 3) });
    expect(bench.pass(A, sent[4])).toEqual({ b: [sent[4]] });
  });

  it('has a bounded packet buffer, and taken frames count until they are released', () => {
    const bench = new Bench({ bufferPackets: 2 });
    const bytes = frame(MACS[B], MACS[A]);
    bench.switch.receive(A, bytes, 0, bytes.length, 0); // a flood of three copies
    expect(bench.switch.bufferedPackets).toBe(2);
    expect(bench.counters('d').tx_dropped_buffer_full).toBe(1);
    const slot = bench.switch.take(B, 0);
    expect(bench.switch.bufferedPackets).toBe(2);
    bench.switch.release(slot);
    expect(bench.switch.bufferedPackets).toBe(1);
  });

  it('survives any bytes', () => {
    const bench = new Bench({ faults: FaultPlan.parse('random=0.5;corrupt=0.5', new SeededRandom(1)) });
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 120 }), fc.nat(3), (bytes, port) => {
        bench.pass(port, bytes);
      }),
      { numRuns: 2000 },
    );
    const base = roceFrame(A, B, { psn: 1 });
    fc.assert(
      fc.property(fc.nat(base.length - 1), fc.nat(255), fc.nat(base.length), (at, value, length) => {
        const mutated = base.slice(0, length);
        if (at < length) mutated[at] = value;
        bench.pass(A, mutated);
      }),
      { numRuns: 5000 },
    );
  });

  it('refuses port names that no rule could mention', () => {
    expect(() => new Switch({ ports: ['a'] })).toThrow(/two or more/);
    expect(() => new Switch({ ports: ['a', 'a'] })).toThrow(/different/);
    expect(() => new Switch({ ports: ['a', 'b>c'] })).toThrow(/letters/);
  });
});

describe('switch with fault rules', () => {
  const withRules = (rules: string, options: Partial<SwitchOptions> = {}): Bench =>
    new Bench({ faults: FaultPlan.parse(rules, new SeededRandom(1)), ...options }).introduce();
  const psns = (frames: readonly Uint8Array[] = []): number[] => frames.map((bytes) => bytes[ROCE_OFFSET + 11]);

  it('drops exactly one in 256 of sequential identifications', () => {
    const bench = withRules('ip-id-lsb=0xff');
    for (let i = 0; i < 1024; i++) bench.pass(A, roceFrame(A, B, { psn: i }));
    expect(bench.counters('b').tx_dropped_fault).toBe(4);
    expect(bench.counters('b').tx_packets - 3).toBe(1020); // three introductions
  });

  it('drops nothing when no rule strikes', () => {
    const bench = withRules('psn=2000');
    for (let i = 0; i < 1024; i++) bench.pass(A, roceFrame(A, B, { psn: i }));
    expect(bench.counters('b').tx_dropped_fault).toBe(0);
  });

  it('tells directions apart by port name', () => {
    const bench = withRules('a>b:every=1');
    expect(bench.pass(A, roceFrame(A, B, { psn: 1 }))).toEqual({});
    expect(psns(bench.pass(B, roceFrame(B, A, { psn: 2 })).a)).toEqual([2]);
    expect(psns(bench.pass(A, roceFrame(A, C, { psn: 3 })).c)).toEqual([3]);
  });

  it('never harms what is not RoCE', () => {
    const bench = withRules('every=1');
    const other = frame(MACS[B], MACS[A]);
    expect(bench.pass(A, other)).toEqual({ b: [other] });
  });

  it('duplicates, and holds back behind exactly N', () => {
    const twice = withRules('duplicate=1:once');
    expect(psns(twice.pass(A, roceFrame(A, B, { psn: 1 })).b)).toEqual([1, 1]);
    const late = withRules('reorder=1,2:once');
    const seen = [1, 2, 3, 4].flatMap((psn) => psns(late.pass(A, roceFrame(A, B, { psn: psn })).b));
    expect(seen).toEqual([2, 3, 1, 4]);
  });

  it('corrupts so that the ICRC check fails, and only one copy of a flooded frame', () => {
    const flow = new IcrcFlow(IPS[A], IPS[B], 0xc000, 4791);
    const verdict = (bytes: Uint8Array = new Uint8Array()) => checkIcrc(flow, bytes, ROCE_OFFSET, 64, 5);
    const bench = new Bench({ faults: FaultPlan.parse('a>b:corrupt=1', new SeededRandom(1)) });
    const copies = bench.pass(A, roceFrame(A, B, { psn: 5 }));
    expect(verdict(copies.b?.[0])).toBe(ICRC_BAD);
    expect(verdict(copies.c?.[0])).toBe(ICRC_OK);
  });

  it('accounts for every frame and every copy, whatever happens', () => {
    const random = new SeededRandom(3).stream('traffic');
    const bench = new Bench({
      faults: FaultPlan.parse('random=0.1;corrupt=0.1;duplicate=0.1;reorder=0.1,4', new SeededRandom(2)),
      queuePackets: 4,
      bufferPackets: 14,
      macTableEntries: 3,
    });
    for (let i = 0; i < 20_000; i++) {
      const port = random.u32() % 4;
      const kind = random.u32() % 10;
      const bytes =
        kind === 0
          ? new Uint8Array(random.u32() % 20)
          : kind === 1
            ? frame(BROADCAST_MAC, MACS[port])
            : roceFrame(port, random.u32() % 4, { psn: i & 0xff });
      bench.switch.receive(port, bytes, 0, bytes.length, i);
      if (random.u32() % 6 === 0) bench.drain();
    }
    const all = Object.values(bench.switch.counters);
    const sum = (pick: (counters: SwitchPortCounters) => number): number =>
      all.reduce((total, counters) => total + pick(counters), 0);
    const dropped = (prefix: string) => (counters: SwitchPortCounters) =>
      Object.entries(counters).reduce((total, [name, value]) => total + (name.startsWith(prefix) ? value : 0), 0);

    for (const counters of all) {
      const { rx_packets, rx_forwarded, rx_flooded } = counters;
      expect(rx_packets).toBe(rx_forwarded + rx_flooded + dropped('rx_dropped')(counters));
    }
    const copies = sum((c) => c.rx_forwarded + 3 * c.rx_flooded + c.faults_duplicated);
    const accounted = sum((c) => c.tx_packets) + sum(dropped('tx_dropped')) + bench.switch.bufferedPackets;
    expect(accounted).toBe(copies);
    for (const name of [
      'tx_dropped_fault',
      'tx_dropped_queue_full',
      'tx_dropped_buffer_full',
      'faults_corrupted',
    ] as const) {
      expect(sum((c) => c[name])).toBeGreaterThan(0);
    }
  });
});

describe('MAC table', () => {
  it('learns no more than it may, and does not forget the living for newcomers', () => {
    const table = new MacTable(2, 100);
    table.learn(1, 0, 0);
    table.learn(2, 1, 0);
    table.learn(3, 2, 50);
    expect([table.lookup(1, 50), table.lookup(2, 50), table.lookup(3, 50), table.size]).toEqual([0, 1, -1, 2]);
  });

  it('makes room when an entry has aged, and that is the one least recently heard', () => {
    const table = new MacTable(2, 100);
    table.learn(1, 0, 0);
    table.learn(2, 1, 0);
    table.learn(1, 0, 60);
    table.learn(3, 2, 101);
    expect([table.lookup(1, 101), table.lookup(2, 101), table.lookup(3, 101), table.size]).toEqual([0, -1, 2, 2]);
  });

  it('does as a table without a shortcut, whoever moves, ages and has the same last bits as another', () => {
    const random = new SeededRandom(11).stream('macs');
    const entriesMax = 6;
    const ageNs = 100;
    const table = new MacTable(entriesMax, ageNs);
    /** The same rules, written down plainly: addresses in the order in which they were refreshed. */
    let model: Array<{ mac: number; port: number; seenNs: number }> = [];
    for (let now = 0; now < 3000; now += randomInt(random, 0, 12)) {
      const mac = 2 ** 41 + randomInt(random, 0, 3) + 1024 * randomInt(random, 0, 2);
      const port = randomInt(random, 0, 2);
      const known = model.find((entry) => entry.mac === mac);
      if (known !== undefined) {
        known.port = port;
        if (now - known.seenNs >= ageNs / 8) {
          known.seenNs = now;
          model = [...model.filter((entry) => entry !== known), known];
        }
      } else {
        if (model.length === entriesMax && now - model[0].seenNs > ageNs) model.shift();
        if (model.length < entriesMax) model.push({ mac, port, seenNs: now });
      }
      table.learn(mac, port, now);
      expect(table.size).toBe(model.length);
      for (const entry of model) {
        expect(table.lookup(entry.mac, now)).toBe(now - entry.seenNs > ageNs ? -1 : entry.port);
      }
    }
  });

  it('tells all 48 bits apart', () => {
    expect(macNumber(parseMac('ff:ff:ff:ff:ff:ff'), 0)).toBe(2 ** 48 - 1);
    expect(macNumber(parseMac('80:00:00:00:00:01'), 0)).toBe(2 ** 47 + 1);
    expect(macNumber(parseMac('00:00:00:80:00:00'), 0)).toBe(2 ** 23);
  });
});
