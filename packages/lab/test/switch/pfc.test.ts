import { describe, expect, it } from 'vitest';
import { PfcFrame, parsePfc, pauseNs } from '../../../../src/packet/pfc.js';
import type { SwitchOptions } from '../../src/switch/switch.js';
import { A, B, C, MACS, pauseFrame, plainFrame, roceFrame, SwitchBench } from './traffic.js';

/** DSCP 26 goes to priority 3, which is lossless; 12 frames of 1000 bytes fit before the XOFF. */
const RATE = 40e9;
const OPTIONS: Partial<SwitchOptions> = {
  pfc: { priorities: [3] },
  buffer: { totalBytes: 200_000, losslessAlpha: 1 / 8, reservedBytes: 0, xonOffsetBytes: 2000 },
  portDefaults: { rateBps: RATE, headroomBytes: 20_000 },
};
const lossless = (from: number, to: number, psn = 0): Uint8Array =>
  roceFrame(from, to, { psn, dscp: 26, frameBytes: 1002 });

function pauseIn(frame: Uint8Array | undefined): readonly [enabled: number, quanta: number] | undefined {
  const out = new PfcFrame();
  if (frame === undefined || !parsePfc(frame, 0, frame.length, out)) return undefined;
  return [out.enabled, out.quanta[3]];
}

/** Frames from a to b until a pause frame waits for a. */
function fillUntilXoff(bench: SwitchBench): number {
  for (let count = 1; count < 1000; count++) {
    bench.receive(A, lossless(A, B, count));
    if (bench.switch.snapshot(0).ports['a'].ingress[3].isXoff) return count;
  }
  throw new Error('no XOFF');
}

describe('sending pauses', () => {
  it('sends XOFF to the ingress that fills the buffer, ahead of everything, and XON when it has drained', () => {
    const bench = new SwitchBench(OPTIONS).introduce();
    // P_in = 200000 - 4 * 20000 = 120000; q <= (120000 - q) / 8 holds up to 13333 bytes: 13 frames of 1002; the 14th is over.
    expect(fillUntilXoff(bench)).toBe(14);
    bench.receive(B, roceFrame(B, A, { dscp: 48 }));
    expect(bench.ready()).toContain(A);
    expect(pauseIn(bench.takeOne(A))).toEqual([0b1000, 65535]);
    expect(pauseIn(bench.takeOne(A))).toBeUndefined(); // the frame from b
    expect(bench.takeOne(C)).toBeUndefined();
    const sizes: number[] = [];
    while (bench.switch.snapshot(0).ports['a'].ingress[3].isXoff) {
      bench.takeOne(B);
      sizes.push(bench.switch.queuedBytes(B, 3));
    }
    // The first to go back is the headroom; then shared + 2000 <= (120000 - shared) / 8 at 11555 bytes: 11 frames.
    expect(sizes.at(-1)).toBe(11 * 1002);
    expect(bench.ready()).toContain(A);
    expect(pauseIn(bench.takeOne(A))).toEqual([0b1000, 0]);
    expect(bench.counters('a')).toMatchObject({ tx_pfc_packets: 2, tx_prio3_pause: 1 });
  });

  it('does not pause lossy priorities', () => {
    const bench = new SwitchBench(OPTIONS).introduce();
    for (let psn = 0; psn < 200; psn++) bench.receive(A, roceFrame(A, B, { psn, frameBytes: 1002 }));
    expect(bench.takeOne(A)).toBeUndefined();
    expect(bench.counters('b').tx_dropped_lossy_threshold).toBeGreaterThan(0);
  });

  it('repeats the pause at half its time for as long as it holds, and not afterwards', () => {
    const bench = new SwitchBench(OPTIONS).introduce();
    fillUntilXoff(bench);
    bench.takeOne(A, 1000);
    const half = pauseNs(65535, RATE) / 2;
    expect(bench.switch.nextDeadlineNs).toBeCloseTo(1000 + half, 3);
    bench.switch.onDeadline(1000 + half - 1);
    expect(bench.takeOne(A, 1000 + half - 1)).toBeUndefined();
    bench.switch.onDeadline(1000 + half);
    expect(bench.ready()).toContain(A);
    expect(pauseIn(bench.takeOne(A, 1000 + half))).toEqual([0b1000, 65535]);
    bench.takeAll(B, 2000 + half);
    expect(pauseIn(bench.takeOne(A, 2000 + half))).toEqual([0b1000, 0]);
    bench.switch.onDeadline(bench.switch.nextDeadlineNs);
    expect(bench.takeOne(A, 1000 + 2 * half)).toBeUndefined();
    expect(bench.switch.nextDeadlineNs).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('keeping to pauses', () => {
  it('holds the paused priority alone, of that port alone, until the time is over', () => {
    const bench = new SwitchBench(OPTIONS).introduce();
    bench.receive(B, pauseFrame(B, 100, [3]), 0); // 100 quanta at 40 Gb/s: 1280 ns
    bench.receive(A, lossless(A, B), 0);
    bench.receive(A, roceFrame(A, B, { psn: 9 }), 0);
    bench.receive(A, lossless(A, C), 0);
    expect(bench.takeAll(C, 0)).toHaveLength(1);
    expect(bench.takeAll(B, 0)).toHaveLength(1);
    expect(bench.queue('b', 3, 0)).toMatchObject({ packets: 1, isPaused: true });
    bench.ready();
    expect(bench.switch.nextDeadlineNs).toBe(1280);
    bench.switch.onDeadline(1279);
    expect([bench.ready(), bench.takeAll(B, 1279)]).toEqual([[], []]);
    bench.switch.onDeadline(1280);
    expect(bench.ready()).toEqual([B]);
    expect(bench.takeAll(B, 1280)).toEqual([lossless(A, B)]);
  });

  it('goes on at once when told to, and names the port', () => {
    const bench = new SwitchBench(OPTIONS).introduce();
    bench.receive(B, pauseFrame(B, 65535, [3]));
    bench.receive(A, lossless(A, B));
    bench.ready();
    bench.receive(B, pauseFrame(B, 0, [3]));
    expect(bench.ready()).toEqual([B]);
    expect(bench.takeAll(B)).toHaveLength(1);
    expect(bench.counters('b')).toMatchObject({ rx_pfc_packets: 2, rx_prio3_pause: 1 });
  });

  it('lets a later frame overwrite the time, in both directions', () => {
    const bench = new SwitchBench(OPTIONS).introduce();
    bench.receive(B, pauseFrame(B, 1000, [3]), 0);
    bench.receive(B, pauseFrame(B, 100, [3]), 0);
    bench.receive(A, lossless(A, B), 0);
    expect(bench.takeAll(B, 1280)).toHaveLength(1);
    bench.receive(B, pauseFrame(B, 100, [3]), 2000);
    bench.receive(B, pauseFrame(B, 200, [3]), 3000);
    bench.receive(A, lossless(A, B), 3000);
    expect(bench.takeAll(B, 3000 + 2559)).toHaveLength(0);
    expect(bench.takeAll(B, 3000 + 2560)).toHaveLength(1);
  });

  it('does not pause priorities that are not lossless, nor the frames that pause others', () => {
    const bench = new SwitchBench(OPTIONS).introduce();
    bench.receive(A, pauseFrame(A, 65535, [0, 1, 2, 3, 4, 5, 6, 7]));
    bench.receive(B, roceFrame(B, A));
    expect(bench.takeAll(A)).toHaveLength(1);
    fillUntilXoff(bench);
    expect(pauseIn(bench.takeOne(A))).toEqual([0b1000, 65535]);
  });

  it('never forwards a pause frame and does not learn from it; what is no PFC is dropped and counted', () => {
    const bench = new SwitchBench(OPTIONS);
    bench.receive(B, pauseFrame(B, 100, [3]));
    expect([bench.switch.bufferedPackets, bench.switch.stations]).toEqual([0, 0]);
    const wholeLink = pauseFrame(B, 100, [3]);
    wholeLink[14] = 0; // opcode 0x0001
    bench.receive(B, wholeLink);
    expect(bench.counters('b')).toMatchObject({ rx_packets: 2, rx_pfc_packets: 1, rx_dropped_bad_pfc: 1 });
  });

  it('is link-local like any other where PFC is off', () => {
    const bench = new SwitchBench();
    bench.receive(B, pauseFrame(B, 65535, [0]));
    bench.receive(A, plainFrame(MACS[B], MACS[A]));
    expect(bench.takeAll(B)).toHaveLength(1);
    expect(bench.counters('b').rx_dropped_link_local).toBe(1);
  });

  it('needs the rate of every port', () => {
    expect(() => new SwitchBench({ pfc: { priorities: [3] } })).toThrow(/rateBps/);
    expect(() => new SwitchBench({ ...OPTIONS, pfc: { priorities: [3], quanta: 0 } })).toThrow(/quanta/);
    expect(() => new SwitchBench({ ...OPTIONS, pfc: { priorities: [8] } })).toThrow(/not a priority/);
  });
});
