import { describe, expect, it } from 'vitest';
import type { SwitchConfig } from '../../src/switch/switch-config.js';
import { A, B, MACS, plainFrame, roceFrame, SwitchBench } from './traffic.js';

/** Fills priorities of b's egress, and says in which priorities the first `count` frames leave. */
function order(
  config: SwitchConfig,
  offered: ReadonlyArray<readonly [priority: number, bytes: number]>,
  count: number,
) {
  const bench = new SwitchBench({ queuePackets: 4096, ...config }).introduce();
  for (let i = 0; i < 300; i++) {
    for (const [priority, frameBytes] of offered)
      bench.receive(A, roceFrame(A, B, { dscp: priority << 3, frameBytes }));
  }
  return Array.from({ length: count }, () => {
    const frame = bench.takeOne(B)!;
    return { priority: frame[15] >> 5, bytes: frame.length };
  });
}

const bytesOf = (frames: ReturnType<typeof order>, priority: number): number =>
  frames.reduce((sum, frame) => sum + (frame.priority === priority ? frame.bytes : 0), 0);

describe('scheduling', () => {
  it('serves strict priorities first, the highest before all', () => {
    const left = order(
      {},
      [
        [0, 110],
        [6, 110],
        [7, 110],
      ],
      700,
    ).map(({ priority }) => priority);
    expect(left.slice(0, 300).every((priority) => priority === 7)).toBe(true);
    expect(left.slice(300, 600).every((priority) => priority === 6)).toBe(true);
    expect(left.slice(600).every((priority) => priority === 0)).toBe(true);
  });

  it('shares the rest by weight, in bytes, whatever the frame sizes', () => {
    const weights = [1, 1, 1, 3, 1, 1, 1, 1];
    const left = order(
      { scheduling: { weights } },
      [
        [0, 1502],
        [3, 302],
      ],
      256,
    );
    const ratio = bytesOf(left, 3) / bytesOf(left, 0);
    expect(ratio).toBeGreaterThan(2.7); // 16 rounds, and at either end a part of one
    expect(ratio).toBeLessThan(3.3);
  });

  it('shares equally by default', () => {
    const left = order(
      {},
      [
        [1, 1502],
        [2, 1502],
        [4, 1502],
      ],
      300,
    );
    for (const priority of [1, 2, 4]) expect(bytesOf(left, priority)).toBeCloseTo(100 * 1502, -4);
  });

  it('gives a queue that runs empty no credit for later', () => {
    const bench = new SwitchBench({
      queuePackets: 4096,
      scheduling: { weights: [1, 1, 1, 8, 1, 1, 1, 1] },
    }).introduce();
    const receive = (priority: number) => bench.receive(A, roceFrame(A, B, { dscp: priority << 3, frameBytes: 1502 }));
    for (let i = 0; i < 400; i++) for (const priority of [0, 1]) receive(priority);
    for (let round = 0; round < 60; round++) {
      receive(3); // one frame a round, of a share of eight
      for (let i = 0; i < 8; i++) bench.takeOne(B);
    }
    for (let i = 0; i < 300; i++) receive(3);
    const left = Array.from({ length: 100 }, () => bench.takeOne(B)![15] >> 5);
    expect(left.filter((priority) => priority !== 3).length).toBeGreaterThanOrEqual(18);
  });

  it.each([[[1, 2]], [[0, 1, 1, 1, 1, 1, 1, 1]], [[1.5, 1, 1, 1, 1, 1, 1, 1]]])('refuses the weights %j', (weights) => {
    expect(() => new SwitchBench({ scheduling: { weights } })).toThrow(/one integer from 1 up/);
  });

  it('makes any priority strict', () => {
    const left = order(
      { scheduling: { strict: [2] } },
      [
        [7, 110],
        [2, 110],
      ],
      300,
    );
    expect(left.every(({ priority }) => priority === 2)).toBe(true);
  });

  it('keeps the order within a priority', () => {
    const bench = new SwitchBench().introduce();
    for (let psn = 0; psn < 60; psn++) bench.receive(A, roceFrame(A, B, { psn, dscp: (psn % 3) << 3 }));
    const left = bench.takeAll(B);
    for (const priority of [0, 1, 2]) {
      const psns = left.filter((frame) => frame[15] >> 5 === priority).map((frame) => frame[53]);
      expect(psns).toEqual(Array.from({ length: 20 }, (_, i) => 3 * i + priority));
    }
  });
});

describe('classification', () => {
  const priorityOf = (config: SwitchConfig, frame: Uint8Array): number => {
    const bench = new SwitchBench(config).introduce();
    bench.receive(A, frame);
    return bench.switch.snapshot(0).ports['b'].egress.findIndex(({ packets }) => packets === 1);
  };
  const tagged = (frame: Uint8Array, pcp: number): Uint8Array =>
    Uint8Array.from([...frame.subarray(0, 12), 0x81, 0x00, pcp << 5, 0x05, ...frame.subarray(12)]);

  it.each([4, 6] as const)('goes by the DSCP of IPv%d, eight to a priority', (family) => {
    for (const [dscp, priority] of [
      [0, 0],
      [7, 0],
      [8, 1],
      [26, 3],
      [48, 6],
      [63, 7],
    ]) {
      expect(priorityOf({}, roceFrame(A, B, { dscp, family }))).toBe(priority);
    }
  });

  it('takes other maps', () => {
    const classification = { dscpToPriority: { 26: 5 } };
    expect(priorityOf({ classification }, roceFrame(A, B, { dscp: 26 }))).toBe(5);
    expect(priorityOf({ classification }, roceFrame(A, B, { dscp: 27 }))).toBe(3);
    expect(() => new SwitchBench({ classification: { dscpToPriority: { 64: 1 } } })).toThrow(/DSCP 64/);
    expect(() => new SwitchBench({ classification: { dscpToPriority: { 1: 8 } } })).toThrow(/priority 8/);
  });

  it('trusts the tag where there is no IP, or when told to trust nothing else', () => {
    expect(priorityOf({}, tagged(plainFrame(MACS[B], MACS[A]), 5))).toBe(5);
    expect(priorityOf({}, plainFrame(MACS[B], MACS[A]))).toBe(0);
    const frame = tagged(roceFrame(A, B, { dscp: 26 }), 4);
    expect(priorityOf({}, frame)).toBe(3);
    expect(priorityOf({ classification: { trust: 'pcp' } }, frame)).toBe(4);
    expect(priorityOf({ classification: { trust: 'pcp' } }, roceFrame(A, B, { dscp: 26 }))).toBe(0);
  });
});
