/** All parts of the switch at once, on traffic nobody would send on purpose: nothing throws, every frame is accounted for, memory comes back. */

import { describe, expect, it } from 'vitest';
import { type RandomSource, SeededRandom } from '../../../../src/core/random.js';
import { BROADCAST_MAC } from '../../../../src/packet/ethernet.js';
import { FaultPlan } from '../../../../src/port/faults/fault-plan.js';
import { FramePool } from '../../src/switch/frame-pool.js';
import type { SwitchOptions } from '../../src/switch/switch.js';
import { MACS, NAMES, pauseFrame, plainFrame, roceFrame, SwitchBench } from './traffic.js';

function everything(seed: number): Partial<SwitchOptions> {
  const random = new SeededRandom(seed);
  return {
    faults: FaultPlan.parse('random=0.02;corrupt=0.02;duplicate=0.02;reorder=0.02,4', random),
    random: random.stream('marking'),
    scheduling: { strict: [7], weights: [1, 2, 3, 4, 5, 6, 7, 8] },
    buffer: { totalBytes: 60_000, reservedBytes: 500, headroomOversubscription: 2 },
    pfc: { priorities: [3, 4], quanta: 2000, watchdog: { detectNs: 200_000, restoreNs: 300_000, pollNs: 50_000 } },
    ecn: { kind: 'red', kminBytes: 2000, kmaxBytes: 8000, pmax: 0.5, dropNotEct: true },
    portDefaults: { rateBps: 10e9, headroomBytes: 4000 },
    portConfig: {
      d: {
        ecn: {
          kind: 'pi',
          referenceBytes: 4000,
          proportionalPerByte: 1e-4,
          integralPerByteSecond: 10,
          at: 'enqueue',
          dropNotEct: true,
        },
      },
    },
    routes: [{ to: '10.0.0.3', ports: ['c', 'd'] }],
  };
}

function anyFrame(random: RandomSource, port: number): Uint8Array {
  const frame = roceFrame(port, random.u32() % 4, {
    psn: random.u32() & 0xff,
    dscp: random.u32() & 63,
    ecn: random.u32() & 3,
    sourcePort: random.u32() & 0xffff,
    family: random.u32() % 4 === 0 ? 6 : 4,
    frameBytes: 302 + 4 * (random.u32() % 200),
  });
  switch (random.u32() % 12) {
    case 0:
      return pauseFrame(port, random.u32() % 3 === 0 ? 0 : random.u32() & 0xffff, [random.u32() & 7, random.u32() & 7]);
    case 1:
      return plainFrame(random.u32() % 2 === 0 ? BROADCAST_MAC : MACS[random.u32() % 4], MACS[port]);
    case 2:
      return frame.subarray(0, random.u32() % frame.length);
    case 3:
      for (let i = 0; i < 3; i++) frame[random.u32() % 60] = random.u32();
      return frame;
    default:
      return frame;
  }
}

/** Random traffic for `steps` of about a microsecond; what every frame's fate was, as one text. */
function ride(seed: number, steps: number, pool?: FramePool): { bench: SwitchBench; trace: string; nowNs: number } {
  const bench = new SwitchBench({ ...everything(seed), pool });
  const random = new SeededRandom(seed).stream('traffic');
  let nowNs = 0;
  let trace = '';
  for (let step = 0; step < steps; step++) {
    nowNs += random.u32() % 2000;
    if (bench.switch.nextDeadlineNs <= nowNs) bench.switch.onDeadline(nowNs);
    const port = random.u32() % 4;
    const frame = anyFrame(random, port);
    if (pool === undefined) bench.receive(port, frame, nowNs);
    else bench.switch.receiveSlot(port, pool.store(frame, 0, frame.length), nowNs);
    if (random.u32() % 50 === 0) bench.switch.block(random.u32() % 4, random.u32() & 7);
    if (random.u32() % 25 === 0) bench.switch.unblock(random.u32() % 4);
    for (const ready of bench.ready()) trace += bench.takeOne(ready, nowNs)?.toString() ?? '-';
  }
  return { bench, trace, nowNs };
}

describe('the switch with everything on', () => {
  it.each([1, 2, 3, 4])('accounts for every frame and gives its memory back: seed %d', (seed) => {
    const { bench, nowNs } = ride(seed, 8000);
    const later = nowNs + 1e9; // all pauses and storms are over
    for (let port = 0; port < NAMES.length; port++) bench.switch.unblock(port);
    while (bench.switch.nextDeadlineNs <= later) bench.switch.onDeadline(bench.switch.nextDeadlineNs);
    bench.drain(later);
    let copies = 0;
    let accounted = 0;
    for (const counters of Object.values(bench.switch.counters)) {
      const dropped = (prefix: string): number =>
        Object.entries(counters).reduce((sum, [name, n]) => sum + (name.startsWith(prefix) ? n : 0), 0);
      expect(counters.rx_packets).toBe(
        counters.rx_forwarded + counters.rx_flooded + counters.rx_pfc_packets + dropped('rx_dropped_'),
      );
      copies += counters.rx_forwarded + 3 * counters.rx_flooded + counters.faults_duplicated;
      accounted += counters.tx_packets - counters.tx_pfc_packets + dropped('tx_dropped_');
      expect(counters.pfcwd_restored).toBe(counters.pfcwd_storms);
    }
    expect(accounted + bench.switch.bufferedPackets).toBe(copies); // a few are held back by a reorder rule
    const { pools, ports } = bench.switch.snapshot(later);
    for (const pool of Object.values(pools!)) expect(pool.usedBytes).toBe(0);
    for (const { egress, ingress } of Object.values(ports)) {
      expect(egress.some(({ packets, isPaused, isInStorm }) => packets > 0 || isPaused || isInStorm)).toBe(false);
      expect(ingress.some(({ isXoff }) => isXoff)).toBe(false);
    }
    const seen = (name: 'pfcwd_storms' | 'tx_ecn_marked' | 'tx_pfc_packets' | 'tx_dropped_watchdog') =>
      Object.values(bench.switch.counters).reduce((sum, counters) => sum + counters[name], 0);
    for (const name of ['pfcwd_storms', 'tx_ecn_marked', 'tx_pfc_packets', 'tx_dropped_watchdog'] as const) {
      expect(seen(name), name).toBeGreaterThan(0);
    }
  });

  it('does the same with frames that it takes over in their slots, and all slots come back', () => {
    const pool = new FramePool(9234);
    const { bench, trace } = ride(5, 2000, pool);
    expect(trace).toBe(ride(5, 2000).trace);
    expect(bench.switch.bufferedPackets).toBeGreaterThan(0);
    expect(pool.used).toBe(bench.switch.bufferedPackets);
    const foreign = pool.allocate(60);
    expect(pool.used).toBe(bench.switch.bufferedPackets + 1);
    pool.release(foreign);
  });

  it('does the same with the same seed, and something else with another', () => {
    expect(ride(5, 2000).trace).toBe(ride(5, 2000).trace);
    expect(ride(5, 2000).trace).not.toBe(ride(6, 2000).trace);
  });
});
