import { describe, expect, it } from 'vitest';
import { type RandomSource, SeededRandom } from '../../../../src/core/random.js';
import { ECN_CE, readEcn } from '../../../../src/packet/ecn.js';
import { ETHERNET_BYTES } from '../../../../src/packet/ethernet.js';
import { FRAME_OK, FrameInfo, parseFrame } from '../../../../src/packet/frame.js';
import { checkIcrc, ICRC_OK, IcrcFlow } from '../../../../src/packet/icrc.js';
import { newMarker } from '../../src/switch/marking.js';
import type { MarkingConfig, PiConfig, RedConfig } from '../../src/switch/switch-config.js';
import { A, B, IPS, MACS, plainFrame, ROCE_OFFSET, roceFrame, SwitchBench } from './traffic.js';

const random = (): RandomSource => new SeededRandom(1).stream('marking');
/** The paper's set (SIGCOMM'15): 5 KB, 200 KB, 1 %. */
const PAPER: RedConfig = { kind: 'red', kminBytes: 5000, kmaxBytes: 200_000, pmax: 0.01 };
/** Marks everything that leaves more than 1000 bytes behind it. */
const STEP: RedConfig = { kind: 'red', kminBytes: 1000, kmaxBytes: 1000, pmax: 1 };

function share(config: MarkingConfig, queueBytes: number, draws: number): number {
  const marker = newMarker(config, random());
  let marked = 0;
  for (let i = 0; i < draws; i++) if (marker.decide(queueBytes, i)) marked++;
  return marked / draws;
}

describe('RED on the instantaneous queue', () => {
  it('never marks up to Kmin and always above Kmax', () => {
    expect(share(PAPER, 0, 1000)).toBe(0);
    expect(share(PAPER, 5000, 1000)).toBe(0);
    expect(share(PAPER, 200_001, 1000)).toBe(1);
  });

  it.each([
    [102_500, 0.005],
    [200_000, 0.01],
  ])('marks at %d bytes with probability %d', (queueBytes, expected) => {
    const draws = 200_000;
    const sigma = Math.sqrt((expected * (1 - expected)) / draws);
    expect(Math.abs(share(PAPER, queueBytes, draws) - expected)).toBeLessThan(4 * sigma);
  });
});

describe('PI marking', () => {
  const GAINS: PiConfig = {
    kind: 'pi',
    referenceBytes: 200_000,
    proportionalPerByte: 2e-8,
    integralPerByteSecond: 5e-7,
  };
  const perSecond = (queueBytes: number, seconds: number): number => {
    const marker = newMarker(GAINS, random());
    let marked = 0;
    for (let i = 1; i <= 1e5; i++) if (marker.decide(queueBytes, (i * seconds * 1e9) / 1e5) && i > 9e4) marked++;
    return marked / 1e4;
  };

  it('rises while the queue is over the reference: p = K1 q + K2 e t', () => {
    // 400 KB for 1 s: 0.008 + 5e-7 * 200e3 * 1 = 0.108, seen over the last tenth of the time: 0.103
    expect(Math.abs(perSecond(400_000, 1) - 0.103)).toBeLessThan(0.015);
  });

  it('marks nothing while it is below', () => {
    expect(perSecond(150_000, 10)).toBe(0);
  });

  it('does not wind up: after an age over the reference it lets go as soon as after a moment', () => {
    const marker = newMarker(GAINS, random());
    const marks = (queueBytes: number, fromS: number, toS: number): number => {
      let count = 0;
      for (let i = 1; i <= 1000; i++)
        if (marker.decide(queueBytes, (fromS + ((toS - fromS) * i) / 1000) * 1e9)) count++;
      return count;
    };
    expect(marks(2_000_000, 0, 1000)).toBeGreaterThan(900);
    // p falls by K2 * 200 KB = 0.1 a second from 1: after 11 s nothing is left.
    expect(marks(0, 1000, 1011)).toBeGreaterThan(0);
    expect(marks(0, 1011, 1020)).toBe(0);
  });
});

describe('marking in the switch', () => {
  const withMarking = (ecn: MarkingConfig) => new SwitchBench({ ecn, random: random() }).introduce();
  const fill = (bench: SwitchBench, count: number, ecn: number, family: 4 | 6 = 4): void => {
    for (let psn = 0; psn < count; psn++) bench.receive(A, roceFrame(A, B, { psn, ecn, family, frameBytes: 602 }));
  };
  const isMarked = (frame: Uint8Array): boolean => readEcn(frame, ETHERNET_BYTES) === ECN_CE;

  it('decides when the packet leaves, on what it leaves behind', () => {
    const bench = withMarking(STEP);
    fill(bench, 4, 2);
    // 1806 and 1204 bytes remain behind the first two, 602 and 0 behind the others.
    expect(bench.takeAll(B).map(isMarked)).toEqual([true, true, false, false]);
    expect(bench.counters('b').tx_ecn_marked).toBe(2);
  });

  it('decides on arrival, on what it finds, when told to', () => {
    const bench = withMarking({ ...STEP, at: 'enqueue' });
    fill(bench, 4, 2);
    expect(bench.takeAll(B).map(isMarked)).toEqual([false, false, true, true]);
  });

  it.each([4, 6] as const)('writes a mark that an IPv%d receiver accepts', (family) => {
    const bench = withMarking(STEP);
    fill(bench, 4, 1, family);
    const [first] = bench.takeAll(B);
    const info = new FrameInfo();
    expect(parseFrame(first, 0, first.length, info)).toBe(FRAME_OK); // checks the IPv4 checksum
    expect(info.ecn).toBe(ECN_CE);
  });

  it('leaves the ICRC good', () => {
    const bench = withMarking(STEP);
    fill(bench, 4, 2);
    const [first] = bench.takeAll(B);
    const flow = new IcrcFlow(IPS[A], IPS[B], 0xc000, 4791);
    expect(isMarked(first)).toBe(true);
    expect(checkIcrc(flow, first, ROCE_OFFSET, first.length - ROCE_OFFSET, 0)).toBe(ICRC_OK);
  });

  it('lets Not-ECT pass unmarked, or drops it when told to', () => {
    const passes = withMarking(STEP);
    fill(passes, 4, 0);
    expect(passes.takeAll(B).map(isMarked)).toEqual([false, false, false, false]);
    for (const at of ['dequeue', 'enqueue'] as const) {
      const drops = withMarking({ ...STEP, at, dropNotEct: true });
      fill(drops, 4, 0);
      expect(drops.takeAll(B)).toHaveLength(2);
      expect(drops.counters('b').tx_dropped_not_ect).toBe(2);
    }
  });

  it('counts a packet that was marked before only there', () => {
    const bench = withMarking(STEP);
    fill(bench, 4, ECN_CE);
    expect(bench.takeAll(B).every(isMarked)).toBe(true);
    expect(bench.counters('b').tx_ecn_marked).toBe(0);
  });

  it('spares CNPs and frames without IP', () => {
    const bench = withMarking(STEP);
    for (let psn = 0; psn < 4; psn++) bench.receive(A, roceFrame(A, B, { psn, ecn: 2, dscp: 48, frameBytes: 602 }));
    expect(bench.takeAll(B).some(isMarked)).toBe(false);
    const other = plainFrame(MACS[B], MACS[A], 7);
    for (let i = 0; i < 30; i++) bench.receive(A, other);
    expect(bench.takeAll(B).every((frame) => frame.every((byte, i) => byte === other[i]))).toBe(true);
  });

  it('can be set port by port', () => {
    const ecn = STEP;
    const bench = new SwitchBench({ ecn, random: random(), portConfig: { b: { ecn: null } } }).introduce();
    fill(bench, 4, 2);
    expect(bench.takeAll(B).some(isMarked)).toBe(false);
  });

  it('gives the same marks for the same seed', () => {
    const run = (seed: number): string => {
      const ecn: RedConfig = { kind: 'red', kminBytes: 0, kmaxBytes: 200_000, pmax: 1 };
      const bench = new SwitchBench({ ecn, random: new SeededRandom(seed).stream('marking') }).introduce();
      fill(bench, 200, 2);
      return bench.takeAll(B).map(isMarked).join();
    };
    expect(run(1)).toBe(run(1));
    expect(run(1)).not.toBe(run(2));
  });

  it('refuses numbers that describe no marking, and marking without a source of randomness', () => {
    expect(() => withMarking({ ...STEP, kmaxBytes: 10 })).toThrow(/Kmin is at most Kmax/);
    expect(() => withMarking({ ...STEP, pmax: 1.5 })).toThrow(/Pmax/);
    expect(() => new SwitchBench({ ecn: STEP })).toThrow(/random/);
  });
});
