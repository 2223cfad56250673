/** When packets may leave; 1 Gb/s is one byte in 8 ns. */

import { describe, expect, it } from 'vitest';
import { ConstantRate } from '../../src/dcqcn/constant-rate.js';
import { NotificationPoint } from '../../src/dcqcn/notification-point.js';
import { RatePacer } from '../../src/dcqcn/pacer.js';

const GBPS = 1e9;
const PACKET_BYTES = 1000;
const PACKET_NS = 8000;

function pacer(options: { burstBytes?: number; catchUpNs?: number } = {}): RatePacer {
  return new RatePacer(new ConstantRate({ rateBps: GBPS }), options.burstBytes ?? 0, options.catchUpNs ?? 0);
}

/** Sends as soon as allowed, but looks only at multiples of `everyNs`; the times of the packets. */
function send(paced: RatePacer, packets: number, fromNs: number, everyNs: number): number[] {
  const times: number[] = [];
  for (let now = fromNs; times.length < packets; now += everyNs) {
    while (times.length < packets && paced.opensNs <= now) {
      times.push(now);
      paced.onSent(PACKET_BYTES, now);
    }
  }
  return times;
}

describe('packet by packet', () => {
  it('leaves the packet time at that rate between two packets', () => {
    expect(send(pacer(), 4, 500, 1)).toEqual([500, 8500, 16_500, 24_500]);
  });

  it('does not make up for a time in which there was nothing to send', () => {
    const paced = pacer({ catchUpNs: 80_000 });
    send(paced, 2, 0, 1);
    paced.idle();
    expect(send(paced, 3, 1e6, 1)).toEqual([1e6, 1e6 + PACKET_NS, 1e6 + 2 * PACKET_NS]);
  });

  it('served late, catches up so that the rate is kept', () => {
    const times = send(pacer({ catchUpNs: 1e6 }), 2000, 0, 700_001);
    // 2000 packets of 8 us: 16 ms, and at most one period late.
    expect(times[1999]).toBeGreaterThan(15e6);
    expect(times[1999]).toBeLessThan(16e6 + 700_001);
  });

  it('served later than it may catch up, loses the rest', () => {
    const times = send(pacer({ catchUpNs: 80_000 }), 100, 0, 1e6);
    // Ten packets of credit and the one that opens the gate.
    expect(times.filter((time) => time === 1e6)).toHaveLength(11);
    expect(times.filter((time) => time === 2e6)).toHaveLength(11);
  });
});

describe('in bursts', () => {
  it('sends a burst back to back and then rests until the rate is kept', () => {
    const times = send(pacer({ burstBytes: 4000 }), 12, 0, 1);
    expect(times).toEqual([0, 0, 0, 0, 32_000, 32_000, 32_000, 32_000, 64_000, 64_000, 64_000, 64_000]);
  });

  it('lets the last packet of a burst be whole, and pays for it', () => {
    const times = send(pacer({ burstBytes: 2500 }), 6, 0, 1);
    expect(times).toEqual([0, 0, 0, 24_000, 24_000, 24_000]);
  });
});

describe('the notification point', () => {
  const answered = (intervalNs: number, marks: number[]) => {
    const np = new NotificationPoint(intervalNs, false);
    return marks.filter((now) => np.onMarked(now));
  };

  it('answers the first mark at once, and then one an interval', () => {
    expect(answered(50_000, [7, 8, 50_006, 50_007, 60_000, 100_006, 100_007])).toEqual([7, 50_007, 100_007]);
  });

  it('answers every mark when there is no interval', () => {
    expect(answered(0, [7, 7, 8])).toEqual([7, 7, 8]);
  });
});
