import { describe, expect, it } from 'vitest';
import type { WatchdogConfig } from '../../src/switch/switch-config.js';
import { A, B, C, pauseFrame, roceFrame, SwitchBench } from './traffic.js';

const MS = 1e6;
const lossless = (from: number, to: number, psn: number): Uint8Array =>
  roceFrame(from, to, { psn, dscp: 26, frameBytes: 1002 });

/** Station b pauses priority 3 from time 0 on for 3.4 ms, again every millisecond; frames from a to b come every millisecond, too. */
class Storm {
  readonly bench: SwitchBench;
  nowMs = 0;
  sent = 0;
  received = 0;

  constructor(watchdog?: WatchdogConfig) {
    this.bench = new SwitchBench({
      pfc: { priorities: [3], ...(watchdog !== undefined && { watchdog }) },
      buffer: { totalBytes: 400_000 },
      portDefaults: { rateBps: 10e9, headroomBytes: 20_000 },
    }).introduce();
  }

  /** Lets time pass up to `untilMs`; `storms`: b goes on pausing. */
  run(untilMs: number, { storms, sends = true }: { storms: boolean; sends?: boolean }): this {
    for (; this.nowMs < untilMs; this.nowMs++) {
      const nowNs = this.nowMs * MS;
      if (storms) this.bench.receive(B, pauseFrame(B, 0xffff, [3]), nowNs);
      while (this.bench.switch.nextDeadlineNs <= nowNs) this.bench.switch.onDeadline(nowNs);
      // A sender that is paused itself sends nothing.
      if (sends && !this.bench.switch.snapshot(nowNs).ports['a'].ingress[3].isXoff) {
        this.bench.receive(A, lossless(A, B, this.sent++ & 0xff), nowNs);
      }
      this.received += this.bench.takeAll(B, nowNs).length;
    }
    return this;
  }

  get dropped(): number {
    return this.bench.counters('b').tx_dropped_watchdog;
  }
}

const TIMES: WatchdogConfig = { detectNs: 200 * MS, restoreNs: 200 * MS, pollNs: 100 * MS };

describe('PFC watchdog', () => {
  it('finds a storm within detection and poll time, drops its traffic, and so frees the sender', () => {
    const storm = new Storm(TIMES).run(400, { storms: true });
    expect(storm.bench.counters('b').pfcwd_storms).toBe(1);
    expect(storm.bench.queue('b', 3, 399 * MS)).toMatchObject({ packets: 0, isInStorm: true });
    expect(storm.bench.switch.snapshot(399 * MS).ports['a'].ingress[3].isXoff).toBe(false);
    expect(storm.received).toBe(0);
    expect(storm.dropped).toBe(storm.sent);
  });

  it('leaves the storm to spread when it is off', () => {
    const storm = new Storm().run(2000, { storms: true });
    expect(storm.bench.switch.snapshot(1999 * MS).ports['a'].ingress[3].isXoff).toBe(true);
    expect(storm.sent).toBeLessThan(100); // a's own traffic stands still, also that to c
    expect(storm.dropped).toBe(0);
  });

  it('loses nothing in a storm that ends before detection', () => {
    const storm = new Storm(TIMES).run(195, { storms: true }).run(400, { storms: false });
    expect(storm.bench.counters('b').pfcwd_storms).toBe(0);
    expect([storm.dropped, storm.received]).toEqual([0, storm.sent]);
  });

  it('sees a storm even when nothing waits', () => {
    const storm = new Storm(TIMES).run(400, { storms: true, sends: false });
    expect(storm.bench.counters('b').pfcwd_storms).toBe(1);
  });

  it('does not take pauses with gaps for a storm', () => {
    const storm = new Storm(TIMES);
    for (let start = 0; start < 2000; start += 100) {
      storm.run(start + 95, { storms: true }).run(start + 100, { storms: false });
    }
    expect(storm.bench.counters('b').pfcwd_storms).toBe(0);
  });

  it('is back to normal when no pause has come for the restoration time', () => {
    const storm = new Storm(TIMES).run(400, { storms: true }).run(701, { storms: false, sends: false });
    expect(storm.bench.counters('b').pfcwd_restored).toBe(1);
    const { sent } = storm;
    storm.run(800, { storms: false });
    expect(storm.received).toBe(storm.sent - sent);
    expect(storm.bench.switch.nextDeadlineNs).toBe(Number.POSITIVE_INFINITY);
  });

  it('stays in the storm while pauses go on, and drops what comes from there in that priority alone', () => {
    const storm = new Storm(TIMES).run(3000, { storms: true });
    expect(storm.bench.counters('b')).toMatchObject({ pfcwd_storms: 1, pfcwd_restored: 0 });
    storm.bench.receive(B, lossless(B, C, 1), 3000 * MS);
    storm.bench.receive(B, roceFrame(B, C), 3000 * MS);
    expect(storm.bench.takeAll(C, 3000 * MS)).toHaveLength(1);
    expect(storm.bench.counters('b').rx_dropped_watchdog).toBe(1);
  });

  it('sends no pause into a storm, and tells a pause that still holds when the storm is over', () => {
    const storm = new Storm(TIMES);
    const { bench } = storm;
    bench.switch.block(C);
    while (!bench.switch.snapshot(0).ports['b'].ingress[3].isXoff) bench.receive(B, lossless(B, C, 0), 0);
    const pausesSent = () => bench.counters('b').tx_prio3_pause;
    storm.run(100, { storms: true, sends: false });
    expect(pausesSent()).toBeGreaterThan(10); // repeated as long as the storm is none
    storm.run(400, { storms: true, sends: false });
    const before = pausesSent();
    bench.receive(B, lossless(B, C, 0), 400 * MS);
    storm.run(600, { storms: false, sends: false });
    expect(pausesSent()).toBe(before);
    storm.run(750, { storms: false, sends: false });
    expect(bench.counters('b').pfcwd_restored).toBe(1);
    expect(pausesSent()).toBeGreaterThan(before);
  });

  it('does not count time between pauses although its driver was late', () => {
    const bench = new Storm(TIMES).bench;
    const second = 1000 * MS;
    bench.receive(B, pauseFrame(B, 0xffff, [3]), 0);
    bench.receive(B, pauseFrame(B, 0xffff, [3]), second);
    bench.switch.onDeadline(second + MS);
    expect(bench.counters('b').pfcwd_storms).toBe(0);
  });

  it.each([{ pollNs: 0 }, { pollNs: 300 * MS }, { detectNs: 0 }])('cannot have the times %j', (times) => {
    expect(() => new Storm({ detectNs: 200 * MS, restoreNs: 200 * MS, ...times })).toThrow(/pollNs is more than 0/);
  });

  it('sends as if there were no pause, when told to forward', () => {
    const storm = new Storm({ ...TIMES, action: 'forward' }).run(400, { storms: true });
    expect(storm.dropped).toBe(0);
    expect(storm.received).toBe(storm.sent);
  });

  it('only counts, when told to alert', () => {
    const storm = new Storm({ ...TIMES, action: 'alert' }).run(400, { storms: true });
    expect(storm.bench.counters('b').pfcwd_storms).toBe(1);
    expect([storm.dropped, storm.received]).toEqual([0, 0]);
  });
});
