import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventQueue } from '../../src/sim/event-queue.js';
import { WakeUp } from '../../src/sim/wake-up.js';

/** Counts what is scheduled. */
class CountedEvents extends EventQueue {
  scheduled = 0;

  override at(timeNs: number, action: () => void): void {
    this.scheduled++;
    super.at(timeNs, action);
  }
}

test('the action is called once, at the earliest time asked for', () => {
  const events = new EventQueue();
  const calls: number[] = [];
  const wakeUp = new WakeUp(events, () => calls.push(events.nowNs));
  for (const timeNs of [50, 20, 80, Number.POSITIVE_INFINITY, 30]) wakeUp.notAfter(timeNs);
  events.run();
  expect(calls).toEqual([20]);
});

test('a far time that is asked for again and again is scheduled once', () => {
  const events = new CountedEvents();
  const calls: number[] = [];
  const wakeUp = new WakeUp(events, () => {
    calls.push(events.nowNs);
    if (events.nowNs < 1e6) wakeUp.notAfter(1e6); // What a retransmission timer does,
    if (events.nowNs < 1000) wakeUp.notAfter(events.nowNs + 10); // and a pacer.
  });
  wakeUp.notAfter(1e6);
  wakeUp.notAfter(10);
  events.run({ untilNs: 1e6 - 1 });
  expect(calls).toHaveLength(100);
  expect(events.scheduled).toBe(1 + 100);
  events.run({ untilNs: 1e6 });
  expect(calls).toHaveLength(101);
  expect(events.nowNs).toBe(1e6);
});

test('calls have the times and the order that they have if every time is scheduled anew', () => {
  const asked = fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 3 });
  fc.assert(
    fc.property(fc.array(asked, { maxLength: 60 }), (plan) => {
      const runs = [forgetful, (events: EventQueue, action: () => void) => new WakeUp(events, action)].map((make) => {
        const events = new EventQueue();
        const seen: string[] = [];
        let turn = 0;
        const wakeUp = make(events, () => {
          seen.push(`woken at ${events.nowNs}`);
          ask();
        });
        const ask = (): void => {
          for (const steps of plan[turn++] ?? []) wakeUp.notAfter((Math.floor(events.nowNs / 6) + steps) * 6);
        };
        // Others at the same times, so that the order shows.
        for (let timeNs = 0; timeNs < 360; timeNs += 2) {
          events.at(timeNs, () => {
            seen.push(`other at ${timeNs}`);
            if (timeNs % 4 === 0) ask();
            events.at(timeNs + 6, () => seen.push(`later of ${timeNs}`));
          });
        }
        events.run();
        return seen;
      });
      expect(runs[1]).toEqual(runs[0]);
    }),
  );
});

/** Schedules every time it is asked for, if it is earlier than what is pending. */
function forgetful(events: EventQueue, action: () => void): Pick<WakeUp, 'notAfter'> {
  let nextNs = Number.POSITIVE_INFINITY;
  const run = (): void => {
    if (nextNs > events.nowNs) return;
    nextNs = Number.POSITIVE_INFINITY;
    action();
  };
  return {
    notAfter: (timeNs) => {
      if (timeNs >= nextNs) return;
      nextNs = timeNs;
      events.at(timeNs, run);
    },
  };
}
