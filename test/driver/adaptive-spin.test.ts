import { describe, expect, it } from 'vitest';
import { AdaptiveSpin, SPIN_MAX_NS } from '../../src/driver/adaptive-spin.js';

const MS = 1e6;

describe('adaptive spin', () => {
  it('spins fully at first, and while work comes back soon', () => {
    const spin = new AdaptiveSpin();
    expect(spin.budgetNs(0)).toBe(SPIN_MAX_NS);
    for (let i = 0; i < 100; i++) spin.onGap(8_000);
    expect(spin.budgetNs(0)).toBe(SPIN_MAX_NS);
  });

  it('gives up after a few long gaps, step by step', () => {
    const spin = new AdaptiveSpin();
    spin.onGap(5 * MS);
    expect(spin.budgetNs(0)).toBe(SPIN_MAX_NS / 2);
    for (let i = 0; i < 5; i++) spin.onGap(5 * MS);
    expect(spin.budgetNs(0)).toBe(0);
  });

  it('spins again when the gaps, sleeps included, are such that it would bridge them', () => {
    const spin = new AdaptiveSpin();
    for (let i = 0; i < 10; i++) spin.onGap(5 * MS);
    spin.onGap(120_000); // Two sleeping ends of a ping-pong.
    expect(spin.budgetNs(0)).toBe(SPIN_MAX_NS);
  });

  it('pauses when the processor was taken away, longer each time that it happens again', () => {
    const spin = new AdaptiveSpin();
    spin.onLook(2_000, 0);
    expect(spin.budgetNs(0)).toBe(SPIN_MAX_NS);
    spin.onLook(4 * MS, 0);
    expect(spin.budgetNs(19 * MS)).toBe(0);
    expect(spin.budgetNs(21 * MS)).toBe(SPIN_MAX_NS);
    spin.onLook(4 * MS, 22 * MS);
    expect(spin.budgetNs(61 * MS)).toBe(0);
    expect(spin.budgetNs(63 * MS)).toBe(SPIN_MAX_NS);
    let now = 63 * MS;
    for (let i = 0; i < 20; i++) {
      now += 2_000 * MS;
      spin.onLook(4 * MS, now);
    }
    expect(spin.budgetNs(now + 2_000 * MS)).toBe(SPIN_MAX_NS); // Never for ever.
  });
});
