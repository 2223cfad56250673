import { describe, expect, it } from 'vitest';
import { AdaptiveSpin, LONE_SPIN_MAX_NS, SPIN_MAX_NS, TrafficSpin } from '../../src/core/adaptive-spin.js';

const MS = 1e6;

/** Eight gaps too long to bridge, the last at `nowNs`. */
function failEightTimes(spin: AdaptiveSpin, nowNs: number): void {
  for (let i = 0; i < 8; i++) spin.onGap(2 * LONE_SPIN_MAX_NS, nowNs);
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

  describe('of a thread that does all the work of its end', () => {
    /** So long it takes with waking up at both ends; a spin would have met it. */
    const PROMISING_NS = 1.5 * LONE_SPIN_MAX_NS;

    it('bridges gaps in which its peer makes the answer, where a thread with a colleague gives up', () => {
      const [alone, other] = [new AdaptiveSpin(true), new AdaptiveSpin()];
      for (const spin of [alone, other]) for (let i = 0; i < 8; i++) spin.onGap(1.8 * SPIN_MAX_NS, 0);
      expect(alone.budgetNs(0)).toBe(LONE_SPIN_MAX_NS);
      expect(other.budgetNs(0)).toBe(0);
    });

    it('begins again when short gaps show that it would pay, and not before', () => {
      const spin = new AdaptiveSpin(true);
      failEightTimes(spin, 0);
      for (let i = 0; i < 7; i++) spin.onGap(PROMISING_NS, MS);
      expect(spin.budgetNs(MS)).toBe(0);
      spin.onGap(PROMISING_NS, MS);
      expect(spin.budgetNs(MS)).toBe(LONE_SPIN_MAX_NS);
    });

    it('needs more of them each time that it was in vain again, 256 at most', () => {
      const spin = new AdaptiveSpin(true);
      const needed = [];
      for (let trial = 0; trial < 8; trial++) {
        failEightTimes(spin, 0);
        let gaps = 0;
        for (; spin.budgetNs(0) === 0; gaps++) spin.onGap(PROMISING_NS, 0);
        needed.push(gaps);
      }
      expect(needed).toEqual([8, 16, 32, 64, 128, 256, 256, 256]);
    });

    it('begins again for traffic of which most comes back soon, not where half of it does', () => {
      const gapsUntilItSpins = (longEvery: number) => {
        const spin = new AdaptiveSpin(true);
        failEightTimes(spin, 0);
        let gaps = 0;
        for (; spin.budgetNs(1) === 0 && gaps < 1000; gaps++) spin.onGap(gaps % longEvery === 0 ? MS : PROMISING_NS, 1);
        return gaps;
      };
      expect(gapsUntilItSpins(4)).toBe(15);
      expect(gapsUntilItSpins(2)).toBe(1000);
    });

    it('stays away for the whole pause after a stall: there is no core to spare', () => {
      const spin = new AdaptiveSpin(true);
      spin.onLook(4 * MS, 0);
      for (let i = 0; i < 1000; i++) spin.onGap(8_000, MS);
      expect(spin.budgetNs(9 * MS)).toBe(0);
    });
  });

  it('takes its pauses whole where another thread of the process wants the core, too', () => {
    const spin = new AdaptiveSpin();
    failEightTimes(spin, 0);
    for (let i = 0; i < 1000; i++) spin.onGap(8_000, MS);
    expect(spin.budgetNs(9 * MS)).toBe(0);
  });
});

describe('spin behind traffic', () => {
  it('takes no program that works for long for one that waits', () => {
    const spins = (isSent: boolean) => {
      const spin = new TrafficSpin();
      let timeNs = 0;
      for (let i = 0; i < 20; i++) {
        spin.onReceived(timeNs);
        timeNs += LONE_SPIN_MAX_NS; // The program works.
        if (isSent) spin.onSent(timeNs);
        timeNs += 20_000;
      }
      return spin.looksAgain(timeNs - 20_000);
    };
    expect(spins(true)).toBe(true);
    expect(spins(false)).toBe(false);
  });

  it('waits for nobody where all is sent and nothing comes', () => {
    const spin = new TrafficSpin();
    for (let timeNs = MS; timeNs < 20 * MS; timeNs += 50_000) {
      spin.onSent(timeNs);
      expect(spin.looksAgain(timeNs)).toBe(false);
    }
    spin.onReceived(20 * MS);
    spin.onSent(20 * MS);
    spin.onSent(20 * MS + 50_000); // Another one starts no other wait.
    expect(spin.looksAgain(20 * MS + 99_000)).toBe(true);
    expect(spin.looksAgain(20 * MS + 101_000)).toBe(false);
  });
});
