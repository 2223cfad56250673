import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type RandomSource, SeededRandom } from '../../../../src/core/random.js';
import type { BufferConfig } from '../../src/switch/switch-config.js';
import type { SwitchSnapshot } from '../../src/switch/switch-snapshot.js';
import { A, B, C, NAMES, roceFrame, SwitchBench } from './traffic.js';

const FRAME = 1002;
const LOSSLESS = 3;
const lossless = (from: number, to: number): Uint8Array => roceFrame(from, to, { dscp: 26, frameBytes: FRAME });
const lossy = (from: number, to: number): Uint8Array => roceFrame(from, to, { frameBytes: FRAME });

function withBuffer(buffer: BufferConfig, headroomBytes = 20_000): SwitchBench {
  return new SwitchBench({
    buffer: { totalBytes: 200_000, reservedBytes: 0, xonOffsetBytes: 0, ...buffer },
    pfc: { priorities: [LOSSLESS] },
    portDefaults: { rateBps: 40e9, headroomBytes },
  }).introduce();
}

const group = (snapshot: SwitchSnapshot, name: string) => snapshot.ports[name].ingress[LOSSLESS];

/** Sends until the ingress queue is paused; the number of frames it took. */
function untilXoff(bench: SwitchBench, from: number, to: number): number {
  for (let count = 1; count < 10_000; count++) {
    bench.receive(from, lossless(from, to));
    if (group(bench.switch.snapshot(0), NAMES[from]).isXoff) return count;
  }
  throw new Error('no XOFF');
}

describe('dynamic thresholds', () => {
  it.each([
    // P_in = 120,000: one queue holds alpha P / (1 + alpha).
    [1 / 8, 13_333],
    [1, 60_000],
    [1 / 64, 1846],
  ])('let one lossless queue hold P alpha / (1 + alpha): alpha %d', (losslessAlpha, limit) => {
    const held = (untilXoff(withBuffer({ losslessAlpha }), A, B) - 1) * FRAME;
    expect(Math.abs(held - limit)).toBeLessThan(FRAME);
  });

  it('leave each of n queues P alpha / (1 + n alpha)', () => {
    const bench = withBuffer({ losslessAlpha: 1 });
    let waiting = [A, C];
    while (waiting.length > 0) {
      for (const from of waiting) bench.receive(from, lossless(from, B));
      const snapshot = bench.switch.snapshot(0);
      waiting = waiting.filter((from) => !group(snapshot, NAMES[from]).isXoff);
    }
    const { ports, pools } = bench.switch.snapshot(0);
    for (const name of ['a', 'c'])
      expect(Math.abs(ports[name].ingress[LOSSLESS].usedBytes - 40_000)).toBeLessThan(FRAME);
    expect(Math.abs(pools!.shared.sizeBytes - pools!.shared.usedBytes - 40_000)).toBeLessThan(2 * FRAME);
  });

  it('keep a reserve free of the threshold', () => {
    const bench = withBuffer({ losslessAlpha: 1 / 64, reservedBytes: 10_000 });
    // 10,000 reserved and alpha (120,000 - 40,000) / (1 + alpha) = 1230 shared
    expect(untilXoff(bench, A, B)).toBe(Math.floor((10_000 + 1230) / FRAME) + 1);
  });

  it('drop lossy frames at the tail of a queue over alpha times the free pool', () => {
    const bench = withBuffer({ lossyAlpha: 1 });
    for (let i = 0; i < 100; i++) bench.receive(A, lossy(A, B));
    const { packets, bytes } = bench.queue('b', 0);
    expect(Math.abs(bytes - 60_000)).toBeLessThan(FRAME);
    expect(bench.counters('b').tx_dropped_lossy_threshold).toBe(100 - packets);
    bench.receive(A, lossy(A, C)); // another queue has room
    expect(bench.queue('c', 0).packets).toBe(1);
  });

  it('shrink for lossless traffic as lossy traffic fills the ingress pool', () => {
    const bench = withBuffer({ losslessAlpha: 1, lossyAlpha: 1 });
    for (let i = 0; i < 100; i++) bench.receive(A, lossy(A, B));
    const free = 120_000 - bench.queue('b', 0).bytes;
    const held = (untilXoff(bench, A, B) - 1) * FRAME;
    expect(Math.abs(held - free / 2)).toBeLessThan(FRAME);
  });
});

describe('pools', () => {
  it('give lossy traffic nothing of the headroom, however greedy its threshold', () => {
    const bench = withBuffer({ lossyAlpha: 1000 });
    for (let i = 0; i < 300; i++) bench.receive(A, lossy(A, B));
    const { pools } = bench.switch.snapshot(0);
    expect(pools!.shared.usedBytes).toBeLessThanOrEqual(120_000);
    expect(pools!.headroom.usedBytes).toBe(0);
    expect(bench.counters('b').tx_dropped_pool_full).toBeGreaterThan(0);
  });

  it('keep lossy traffic to its own egress pool', () => {
    const bench = withBuffer({ lossyAlpha: 1000, egressLossyPoolBytes: 30_000 });
    for (let i = 0; i < 300; i++) bench.receive(A, lossy(A, B));
    expect(bench.switch.snapshot(0).pools!.egressLossy.usedBytes).toBe(29 * FRAME);
  });

  it('charge what comes after an XOFF to the headroom, and give it back first', () => {
    const bench = withBuffer({});
    untilXoff(bench, A, B);
    for (let i = 0; i < 4; i++) bench.receive(A, lossless(A, B));
    const before = bench.switch.snapshot(0);
    expect(group(before, 'a').headroomBytes).toBe(5 * FRAME);
    bench.takeOne(B);
    const after = bench.switch.snapshot(0);
    expect(group(after, 'a').headroomBytes).toBe(4 * FRAME);
    expect(group(after, 'a').usedBytes).toBe(group(before, 'a').usedBytes);
  });

  it('stay in the headroom while paused, even when shared memory is free again', () => {
    const bench = withBuffer({ losslessAlpha: 1, xonOffsetBytes: 1e9 });
    untilXoff(bench, C, B);
    untilXoff(bench, A, B);
    for (let i = 0; i < 40; i++) bench.takeOne(B); // frames of c make room
    expect(group(bench.switch.snapshot(0), 'a').isXoff).toBe(true);
    bench.receive(A, lossless(A, B));
    expect(group(bench.switch.snapshot(0), 'a').headroomBytes).toBe(2 * FRAME);
  });

  it.each([
    [{ totalBytes: 50_000 }, /cannot hold/],
    [{ losslessAlpha: 0 }, /more than 0/],
    [{ headroomOversubscription: 0.5 }, /1 or more/],
    [{ ingressPoolBytes: 150_000 }, /cannot hold/],
    [{ reservedBytes: 50_000 }, /cannot hold/],
    [{ egressLossyPoolBytes: 150_000 }, /larger than the ingress pool/],
  ])('refuse a layout that does not fit: %j', (buffer, message) => {
    expect(() => withBuffer(buffer)).toThrow(message);
  });
});

/** After the XOFF `inFlight` frames still come in, as from a cable. */
function lostAfterXoff(headroomBytes: number, inFlight: number, buffer: BufferConfig = {}, senders = [A]): number {
  const bench = withBuffer(buffer, headroomBytes);
  for (const from of senders) untilXoff(bench, from, B);
  for (let i = 1; i < inFlight; i++) for (const from of senders) bench.receive(from, lossless(from, B));
  return bench.counters('b').tx_dropped_headroom;
}

describe('headroom', () => {
  it('loses nothing when it holds what is under way, and exactly the rest when it does not', () => {
    expect(lostAfterXoff(10 * FRAME, 10)).toBe(0);
    expect(lostAfterXoff(10 * FRAME - 1, 10)).toBe(1);
    expect(lostAfterXoff(4 * FRAME, 10)).toBe(6);
  });

  it('may be over-subscribed as long as not all bursts come at once', () => {
    const buffer = { headroomOversubscription: 2 }; // a pool of 4 * 20 / 2 = 40 frames for four queues of 20
    expect(lostAfterXoff(20 * FRAME, 20, buffer, [A, C])).toBe(0);
    expect(lostAfterXoff(20 * FRAME, 20, buffer, [A, C, 3])).toBe(20);
  });

  it('leaves nobody paused who lost the frame that paused him: nothing of his departs and could let him go on', () => {
    const bench = withBuffer({ lossyAlpha: 1000, headroomOversubscription: 4 });
    for (let i = 0; i < 200; i++) bench.receive(A, lossy(A, B)); // no shared memory is left
    for (let i = 0; i < 20; i++) bench.receive(A, lossless(A, B)); // nor headroom
    bench.receive(C, lossless(C, B));
    expect(bench.counters('b').tx_dropped_headroom).toBe(2);
    bench.drain();
    expect(group(bench.switch.snapshot(0), 'a').isXoff).toBe(false);
    expect(group(bench.switch.snapshot(0), 'c').isXoff).toBe(false);
  });
});

describe('breakpoints', () => {
  it('hold frames at a blocked port or priority, show them, and let them go', () => {
    const bench = withBuffer({});
    bench.switch.block(B, LOSSLESS);
    for (let i = 0; i < 3; i++) bench.receive(A, lossless(A, B));
    bench.receive(A, lossy(A, B));
    expect(bench.takeAll(B)).toHaveLength(1);
    expect(bench.queue('b', LOSSLESS)).toMatchObject({
      packets: 3,
      bytes: 3 * FRAME,
      isBlocked: true,
      isPaused: false,
    });
    bench.switch.block(B);
    bench.receive(A, lossy(A, B));
    expect(bench.takeAll(B)).toHaveLength(0);
    bench.ready();
    bench.switch.unblock(B, LOSSLESS);
    expect(bench.ready()).toEqual([B]);
    expect(bench.takeAll(B)).toHaveLength(3);
    bench.switch.unblock(B);
    expect(bench.takeAll(B)).toHaveLength(1);
  });

  it('keep watermarks until they are reset', () => {
    const bench = withBuffer({});
    bench.switch.resetWatermarks();
    for (let i = 0; i < 5; i++) bench.receive(A, lossless(A, B));
    bench.takeAll(B);
    const full = bench.switch.snapshot(0);
    expect(full.ports['b'].egress[LOSSLESS]).toMatchObject({ bytes: 0, bytesMax: 5 * FRAME });
    expect(group(full, 'a')).toMatchObject({ usedBytes: 0, usedBytesMax: 5 * FRAME });
    expect(full.pools!.egressLossless).toMatchObject({ usedBytes: 0, maxBytes: 5 * FRAME });
    bench.switch.resetWatermarks();
    expect(bench.switch.snapshot(0).ports['b'].egress[LOSSLESS].bytesMax).toBe(0);
  });
});

describe('accounting', () => {
  const sumOf = (snapshot: SwitchSnapshot) => {
    const ports = Object.values(snapshot.ports);
    const egress = ports.flatMap((port) => port.egress).reduce((sum, queue) => sum + queue.bytes, 0);
    const ingress = ports
      .flatMap((port) => port.ingress)
      .reduce((sum, queue) => sum + queue.usedBytes + queue.headroomBytes, 0);
    return { egress, ingress };
  };

  /** Random traffic of both classes between all ports; senders keep to pauses with `inFlight` frames on their way. */
  function traffic(bench: SwitchBench, random: RandomSource, steps: number, inFlight: number): void {
    const credit = NAMES.map(() => inFlight);
    for (let step = 0; step < steps; step++) {
      const from = random.u32() % NAMES.length;
      const to = (from + 1 + (random.u32() % (NAMES.length - 1))) % NAMES.length;
      const isLossless = random.u32() % 2 === 0;
      const paused = group(bench.switch.snapshot(0), NAMES[from]).isXoff;
      if (!paused) credit[from] = inFlight;
      if (!isLossless) bench.receive(from, roceFrame(from, to, { frameBytes: 102 + 4 * (random.u32() % 300) }));
      else if (!paused || --credit[from] > 0) bench.receive(from, lossless(from, to));
      if (random.u32() % 3 === 0) bench.takeOne(random.u32() % NAMES.length);
      const snapshot = bench.switch.snapshot(0);
      const { egress, ingress } = sumOf(snapshot);
      const { shared, headroom, egressLossy, egressLossless } = snapshot.pools!;
      expect(ingress).toBe(egress);
      expect(egressLossy.usedBytes + egressLossless.usedBytes).toBe(egress);
      expect(egress).toBeLessThanOrEqual(egressLossless.sizeBytes);
      expect(shared.usedBytes).toBeLessThanOrEqual(shared.sizeBytes);
      expect(headroom.usedBytes).toBeLessThanOrEqual(headroom.sizeBytes);
    }
  }

  const config = fc.record({
    losslessAlpha: fc.constantFrom(1 / 64, 1 / 8, 1, 8),
    lossyAlpha: fc.constantFrom(1 / 8, 1, 8),
    reservedBytes: fc.constantFrom(0, 1500, 4096),
    xonOffsetBytes: fc.constantFrom(0, 3072),
    totalBytes: fc.constantFrom(100_000, 200_000),
  });

  it('adds up at every step, never overdraws a pool, and returns to zero', () => {
    fc.assert(
      fc.property(config, fc.nat(), (buffer, seed) => {
        const bench = withBuffer(buffer, 12 * FRAME);
        traffic(bench, new SeededRandom(seed).stream('traffic'), 400, 12);
        bench.drain();
        const { pools, ports } = bench.switch.snapshot(0);
        for (const pool of Object.values(pools!)) expect(pool.usedBytes).toBe(0);
        for (const { ingress } of Object.values(ports)) {
          for (const use of ingress) expect([use.usedBytes, use.headroomBytes, use.isXoff]).toEqual([0, 0, false]);
        }
      }),
      { numRuns: 30 },
    );
  });

  it('drops no lossless frame whose headroom holds what is under way, and some when it does not', () => {
    const losses = (headroomFrames: number): number => {
      let lost = 0;
      for (let seed = 0; seed < 10; seed++) {
        const bench = withBuffer({ totalBytes: 100_000, losslessAlpha: 1 / 8 }, headroomFrames * FRAME);
        traffic(bench, new SeededRandom(seed).stream('traffic'), 400, 12);
        for (const name of NAMES) lost += bench.counters(name).tx_dropped_headroom;
      }
      return lost;
    };
    expect(losses(12)).toBe(0);
    expect(losses(4)).toBeGreaterThan(0);
  });

  it('counts every frame, also when drops, marks, pauses and storms come together', () => {
    const bench = new SwitchBench({
      buffer: { totalBytes: 100_000, reservedBytes: 0 },
      pfc: { priorities: [LOSSLESS], watchdog: { detectNs: 1e6, restoreNs: 1e6, pollNs: 1e6 } },
      ecn: { kind: 'red', kminBytes: 2000, kmaxBytes: 20_000, pmax: 0.5, dropNotEct: true },
      random: new SeededRandom(7).stream('marking'),
      portDefaults: { rateBps: 10e9, headroomBytes: 4 * FRAME },
    }).introduce();
    traffic(bench, new SeededRandom(8).stream('traffic'), 1500, 12);
    let rx = 0;
    let tx = 0;
    for (const counters of Object.values(bench.switch.counters)) {
      rx += counters.rx_forwarded + 3 * counters.rx_flooded;
      tx += counters.tx_packets - counters.tx_pfc_packets;
      for (const [name, value] of Object.entries(counters)) if (name.startsWith('tx_dropped')) tx += value;
    }
    expect(tx + bench.switch.bufferedPackets).toBe(rx);
    expect(bench.counters('b').tx_dropped_not_ect + bench.counters('b').tx_dropped_headroom).toBeGreaterThan(0);
  });
});
