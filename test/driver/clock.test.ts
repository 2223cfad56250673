import { expect, it } from 'vitest';
import { nowNs } from '../../src/driver/system-clock.js';

it('the clock of a thread is the system’s monotonic clock, to the microsecond', () => {
  for (let n = 0; n < 100; n++) {
    const before = Number(process.hrtime.bigint());
    const now = nowNs();
    const after = Number(process.hrtime.bigint());
    expect(now).toBeGreaterThan(before - 1000);
    expect(now).toBeLessThan(after + 1000);
  }
});
