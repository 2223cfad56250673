import { describe, expect, it } from 'vitest';
import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { virtualClock } from '../../packages/lab/src/sim/virtual-clock.js';
import { type Clock, wakeWhenDue } from '../../src/core/clock.js';

/** Fires each timer when half of the time is left, and at the end 0.8 ms early. */
function earlyClock(events: EventQueue): Clock {
  const inner = virtualClock(events);
  return {
    nowNs: inner.nowNs,
    wakeAt: (timeNs, wake) => {
      const leftNs = timeNs - inner.nowNs();
      return inner.wakeAt(inner.nowNs() + (leftNs > 2e6 ? leftNs / 2 : Math.max(1, leftNs - 0.8e6)), wake);
    },
  };
}

function run(events: EventQueue): void {
  while (events.step());
}

describe('a timer over a clock that wakes early', () => {
  it('calls once, and not before its time', () => {
    const events = new EventQueue();
    const clock = earlyClock(events);
    const calls: number[] = [];
    wakeWhenDue(clock, 30e6, () => calls.push(clock.nowNs()));
    run(events);
    expect(calls).toHaveLength(1);
    expect(calls[0]).toBeGreaterThanOrEqual(30e6);
    expect(calls[0]).toBeLessThan(31e6);
  });

  it('is early without it', () => {
    const events = new EventQueue();
    const clock = earlyClock(events);
    const calls: number[] = [];
    clock.wakeAt(30e6, () => calls.push(clock.nowNs()));
    run(events);
    expect(calls[0]).toBeLessThan(30e6);
  });

  it('can be taken back at any time', () => {
    const events = new EventQueue();
    const clock = earlyClock(events);
    let calls = 0;
    const cancel = wakeWhenDue(clock, 30e6, () => calls++);
    events.at(29e6, cancel); // It has been set again by then.
    run(events);
    expect(calls).toBe(0);
  });

  it('never calls from inside the call, also for a time that has passed', () => {
    const events = new EventQueue();
    let calls = 0;
    wakeWhenDue(virtualClock(events), -5, () => calls++);
    expect(calls).toBe(0);
    run(events);
    expect(calls).toBe(1);
  });
});
