import { afterEach, describe, expect, it, vi } from 'vitest';
import { nowNs, SYSTEM_CLOCK } from '../../src/driver/system-clock.js';

afterEach(() => {
  vi.restoreAllMocks();
});

it('the clock of a thread is the system’s monotonic clock, to the microsecond', () => {
  for (let n = 0; n < 100; n++) {
    const before = Number(process.hrtime.bigint());
    const now = nowNs();
    const after = Number(process.hrtime.bigint());
    expect(now).toBeGreaterThan(before - 1000);
    expect(now).toBeLessThan(after + 1000);
  }
});

describe('a timer of the system clock', () => {
  it('is set again where Node fires it early, and can be taken back after that', () => {
    const fired: Array<() => void> = [];
    const early = (call: () => void) => fired.push(call);
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(early as never); // timer: the fault
    const cleared = vi.spyOn(globalThis, 'clearTimeout').mockImplementation(() => {});
    let calls = 0;
    const cancel = SYSTEM_CLOCK.wakeAt(nowNs() + 60e9, () => calls++);
    fired[0]();
    expect([calls, fired.length]).toEqual([0, 2]);
    cancel();
    expect(cleared).toHaveBeenLastCalledWith(2);
  });

  it('wakes once its time has come', () => {
    const fired: Array<() => void> = [];
    const early = (call: () => void) => fired.push(call);
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(early as never); // timer: the fault
    let calls = 0;
    SYSTEM_CLOCK.wakeAt(nowNs(), () => calls++);
    expect(calls).toBe(0);
    fired[0]();
    expect([calls, fired.length]).toEqual([1, 1]);
  });
});
