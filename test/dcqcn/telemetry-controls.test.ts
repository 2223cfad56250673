/** Each control by telemetry against a second computation of its paper's equations, which shares no code with it. */

import { describe, expect, it } from 'vitest';
import { createRateControl, type RateControlOptions, rateControlSettings } from '../../src/dcqcn/rate-controls.js';
import { Swift } from '../../src/dcqcn/swift.js';
import { encodeDigest } from '../../src/packet/int-trailer.js';
import { acknowledgement } from '../contracts/rate-control-contract.js';

const create = (options: RateControlOptions) => createRateControl(rateControlSettings(options));
const T = 12_000;
const B = 100e9;
const BDP = (B * T) / 8e9;
const RTT = 6000;

/** A queue that fills and drains in front of a port that sends at its rate: [time, queue] every microsecond. */
const queueAt = (now: number) => 256 * Math.round((400 * (1 + Math.sin(now / 40_000))) / 2);
const times = Array.from({ length: 200 }, (_, i) => 1_000_000 + 1000 * i);

describe('hpcc', () => {
  it('has the windows of algorithm 1', () => {
    const control = create({ name: 'hpcc' });
    let [u, stage, reference, updatedNs, window] = [1, 0, BDP, Number.NEGATIVE_INFINITY, BDP];
    const additive = (50e6 * T) / 8e9;
    for (const [i, now] of times.entries()) {
      control.onAck(acknowledgement(RTT, now, { queueBytes: queueAt(now) }), now);
      if (i === 0) continue;
      const before = times[i - 1];
      const sample = Math.min(queueAt(now), queueAt(before)) / BDP + 1;
      u = (1 - 1000 / T) * u + (1000 / T) * sample;
      const down = u >= 0.95 || stage >= 5;
      window = Math.min(BDP, (down ? reference / (u / 0.95) : reference) + additive);
      if (now - RTT >= updatedNs) {
        stage = down ? 0 : stage + 1;
        reference = window;
        updatedNs = now;
      }
      expect(control.windowBytes(now) / window).toBeCloseTo(1, 4);
      expect(control.rateBps(now)).toBeCloseTo((control.windowBytes(now) * 8e9) / T, 3);
    }
  });

  it('grows by its additive step alone while the link is half used, for five round trips, and then at once', () => {
    const control = create({ name: 'hpcc', additiveIncreaseBps: 100e6 });
    let now = 1e6;
    let sent = 100e9 * now;
    const rates: number[] = [];
    const feed = (sentBps: number, steps: number) => {
      for (let i = 0; i < steps; i++) {
        now += RTT;
        sent += sentBps * RTT;
        control.onAck(acknowledgement(RTT - 1, now, { sentBps: sent / now }), now);
        rates.push(control.rateBps(now));
      }
    };
    feed(190e9, 6); // Overload brings it down.
    feed(47.5e9, 24);
    const grown = rates.slice(6).map((rate, i, all) => (i === 0 ? 0 : rate - all[i - 1]));
    expect(grown.slice(1, 3).every((step) => Math.abs(step - 100e6) < 1e3)).toBe(true);
    expect(Math.max(...grown)).toBeGreaterThan(5e9);
  });

  it('stays where it is without records: a switch that writes none says nothing', () => {
    const control = create({ name: 'hpcc' });
    for (const now of times) control.onAck(acknowledgement(RTT, now, { echo: undefined }), now);
    expect(control.windowBytes(0)).toBe(BDP);
  });
});

describe('hpcc-pint', () => {
  it('falls to the share that the digest asks for', () => {
    const control = create({ name: 'hpcc-pint' });
    const digest = encodeDigest(2, 0.5);
    control.onAck(acknowledgement(RTT, 1e6, { digest }), 1e6);
    expect(control.windowBytes(0) / ((BDP * 0.95) / 2)).toBeCloseTo(1, 1);
  });
});

describe('powertcp', () => {
  it('has the windows of algorithm 1', () => {
    const control = create({ name: 'powertcp' });
    const additive = (150e6 * T) / 8e9;
    let [power, old, updatedNs, window] = [1, BDP, Number.NEGATIVE_INFINITY, BDP];
    for (const [i, now] of times.entries()) {
      control.onAck(acknowledgement(RTT, now, { queueBytes: queueAt(now) }), now);
      if (i === 0) continue;
      const growth = (queueAt(now) - queueAt(times[i - 1])) / 1000; // bytes per ns
      const b = B / 8e9;
      const sample = ((growth + b) * (queueAt(now) + b * T)) / (b * b * T);
      power = Math.max(0.5, (power * (T - 1000) + sample * 1000) / T);
      window = Math.min(BDP, 0.9 * (old / power + additive) + 0.1 * window);
      if (now - RTT >= updatedNs) {
        old = window;
        updatedNs = now;
      }
      expect(control.windowBytes(now) / window).toBeCloseTo(1, 4);
    }
  });
});

describe('theta-powertcp', () => {
  it('settles where the round trip is T, and a little more for the additive increase', () => {
    // The plant is a fluid link of one flow: the queue is what the window has beyond the bandwidth-delay product of 6 us.
    const control = create({ name: 'theta-powertcp' });
    let now = 1e6;
    let rttNs = RTT;
    for (let i = 0; i < 20_000; i++) {
      now += 100;
      const aim = Math.max(RTT, (control.windowBytes(now) * 8e9) / B);
      rttNs += (aim - rttNs) * (100 / RTT);
      control.onAck(acknowledgement(rttNs, now), now);
    }
    expect(rttNs).toBeGreaterThan(0.9 * T);
    expect(rttNs).toBeLessThan(1.1 * T);
  });
});

describe('dctcp', () => {
  /** alpha after `rounds` round trips of 10 packets, of which so many were marked. */
  function afterRounds(marked: number, rounds: number) {
    const control = create({ name: 'dctcp' });
    for (let i = 1; i <= rounds; i++) {
      const now = 1e6 + i * RTT;
      control.onAck(acknowledgement(RTT, now, { receivedPackets: 10, markedPackets: marked }), now);
    }
    return control;
  }

  it.each([0, 3, 10])('has an alpha that ends at the share of marked packets, %d of 10', (marked) => {
    const rounds = 200;
    const expected = marked / 10 + (1 - marked / 10) * (1 - 1 / 16) ** rounds;
    expect(afterRounds(marked, rounds).alpha(0)).toBeCloseTo(expected, 9);
  });

  it('halves at the first mark of a new flow, and adds R_AI in a round trip without', () => {
    expect(afterRounds(10, 1).rateBps(0)).toBe(50e9);
    const control = afterRounds(10, 1);
    control.onAck(acknowledgement(RTT, 2e6, { receivedPackets: 10 }), 2e6);
    expect(control.rateBps(0)).toBe(51e9);
  });

  it('counts the marks of a whole round trip, and cuts once', () => {
    const control = afterRounds(10, 1);
    const before = control.rateBps(0);
    const sentBefore = acknowledgement(RTT, 1e6 + RTT + 10, { receivedPackets: 10, markedPackets: 10 });
    control.onAck(sentBefore, 1e6 + RTT + 10);
    expect(control.rateBps(0)).toBe(before);
  });
});

describe('swift', () => {
  it('scales its target with the window as published: a/sqrt(w) + b between fs_min and fs_max', () => {
    const control = create({ name: 'swift' });
    if (!(control instanceof Swift)) throw new Error('not Swift');
    const base = 20_000 + 3_053;
    expect(control.targetNs(0.1)).toBeCloseTo(base + 100_000, 3);
    expect(control.targetNs(0.01)).toBeCloseTo(base + 100_000, 3);
    expect(control.targetNs(100)).toBeCloseTo(base, 3);
    expect(control.targetNs(1000)).toBeCloseTo(base, 3);
    const a = 100_000 / (1 / Math.sqrt(0.1) - 0.1);
    expect(control.targetNs(4)).toBeCloseTo(base + a / 2 - a * 0.1, 3);
  });

  it('grows by one packet a round trip below the target, and falls by the excess, at most by half, once a round trip', () => {
    const control = create({ name: 'swift', scalingRangeNs: 0, initialPackets: 10 });
    const packets = () => control.windowBytes(0) / 1024;
    for (let i = 0; i < 10; i++) control.onAck(acknowledgement(RTT, 1e6 + i), 1e6 + i);
    expect(packets()).toBeCloseTo(11, 0);
    const before = packets();
    const target = 20_000 + 3_053;
    const rttNs = 1.25 * target;
    for (let i = 0; i < 10; i++) control.onAck(acknowledgement(rttNs, 2e6 + i), 2e6 + i);
    expect(packets() / before).toBeCloseTo(1 - 0.8 * 0.2, 6);
    control.onAck(acknowledgement(100 * target, 1e7), 1e7);
    expect(packets() / before).toBeCloseTo((1 - 0.8 * 0.2) / 2, 6);
  });

  it('paces one packet in RTT / w below a window of one packet', () => {
    const control = create({ name: 'swift', scalingRangeNs: 0, initialPackets: 0.5, minimumRateBps: 1e6 });
    control.onAck(acknowledgement(1e6, 1e7), 1e7);
    const window = control.windowBytes(0) / 1024;
    expect(window).toBeCloseTo(0.25, 6);
    expect(control.rateBps(0)).toBeCloseTo((0.25 * 1024 * 8e9) / 1e6, 0);
  });

  it('keeps delays apart where the peer echoes its own: a slow peer does not close the window of the fabric', () => {
    const window = (residenceNs: number, splitsDelay: number) => {
      const control = create({ name: 'swift', splitsDelay, endpointTargetNs: 1e6, scalingRangeNs: 0 });
      for (let i = 0; i < 50; i++) {
        const now = 1e6 + i * 200_000;
        const ack = acknowledgement(100_000, now);
        (ack.echo as { residenceNs: number }).residenceNs = residenceNs;
        control.onAck(ack, now);
      }
      return control.windowBytes(0);
    };
    expect(window(90_000, 1)).toBeGreaterThan(12 * 1024);
    expect(window(90_000, 0)).toBeLessThan(1024);
    expect(window(0, 1)).toBeLessThan(1024);
  });
});
