import { describe, expect, it } from 'vitest';
import { AdaptiveSpin, SPIN_MAX_NS } from '../../src/core/adaptive-spin.js';

const MS = 1e6;

/** Eight gaps too long to bridge, the last at `nowNs`. */
function failEightTimes(spin: AdaptiveSpin, nowNs: number): void {
  for (let i = 0; i < 8; i++) spin.onGap(2 * SPIN_MAX_NS, nowNs);
}

describe('adaptive spin', () => {
  it('spins at first, and while work comes back soon', () => {
    const spin = new AdaptiveSpin();
    expect(spin.budgetNs(0)).toBe(SPIN_MAX_NS);
    for (let i = 0; i < 100; i++) spin.onGap(8_000, i);
    expect(spin.budgetNs(100)).toBe(SPIN_MAX_NS);
  });

  it('stops after eight spins in vain in a row, not before', () => {
    const spin = new AdaptiveSpin();
    for (let i = 0; i < 7; i++) spin.onGap(MS, 0);
    spin.onGap(8_000, 0);
    for (let i = 0; i < 7; i++) spin.onGap(MS, 0);
    expect(spin.budgetNs(0)).toBe(SPIN_MAX_NS);
    spin.onGap(MS, 0);
    expect(spin.budgetNs(9 * MS)).toBe(0);
    expect(spin.budgetNs(11 * MS)).toBe(SPIN_MAX_NS);
  });

  it('stays away twice as long each time that it was in vain again, a second at most', () => {
    const spin = new AdaptiveSpin();
    failEightTimes(spin, 0);
    failEightTimes(spin, 11 * MS);
    expect(spin.budgetNs(30 * MS)).toBe(0);
    expect(spin.budgetNs(32 * MS)).toBe(SPIN_MAX_NS);
    let now = 32 * MS;
    for (let i = 0; i < 20; i++) {
      failEightTimes(spin, now);
      now += 1001 * MS;
      expect(spin.budgetNs(now)).toBe(SPIN_MAX_NS);
    }
  });

  it('forgets that once a spin has paid', () => {
    const spin = new AdaptiveSpin();
    for (let now = 0; now < 10_000 * MS; now += 1001 * MS) failEightTimes(spin, now);
    spin.onGap(5_000, 20_000 * MS);
    failEightTimes(spin, 20_000 * MS);
    expect(spin.budgetNs(20_011 * MS)).toBe(SPIN_MAX_NS);
  });

  it('stops at once when the processor was taken away between two looks', () => {
    const spin = new AdaptiveSpin();
    spin.onLook(3_000, 0);
    expect(spin.budgetNs(0)).toBe(SPIN_MAX_NS);
    spin.onLook(4 * MS, 0);
    expect(spin.budgetNs(9 * MS)).toBe(0);
  });
});
