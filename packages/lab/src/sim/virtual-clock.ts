import type { Clock } from 'rocev2/internal/core';
import type { EventQueue } from './event-queue.js';

/** A timer that was taken back still runs as an event, and does nothing. */
export function virtualClock(events: EventQueue): Clock {
  return {
    nowNs: () => events.nowNs,
    wakeAt: (timeNs, wake) => {
      let cancelled = false;
      events.at(timeNs, () => {
        if (!cancelled) wake();
      });
      return () => {
        cancelled = true;
      };
    },
  };
}
