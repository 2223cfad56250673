import { describe, expect, it } from 'vitest';
import { SPIN_MAX_NS } from '../../src/core/adaptive-spin.js';
import { IdlePolicy } from '../../src/driver/worker/idle-policy.js';
import { ASLEEP, AWAKE, WORD_STATE } from '../../src/driver/worker/thread-messages.js';
import { DoorbellRing } from '../../src/memory/ring/doorbell-ring.js';
import type { Nic } from '../../src/nic/nic.js';

const shared = (bytes: number) => new SharedArrayBuffer(bytes);

function setUp(spin: boolean, spinner = new Int32Array(shared(4))) {
  const rung: Array<number | 'all'> = [];
  const nic = { doorbell: (qpn: number) => rung.push(qpn), doorbellAll: () => rung.push('all') };
  const control = new Int32Array(shared(64));
  const doorbells = DoorbellRing.create(shared, 8);
  const rest = new IdlePolicy(nic as unknown as Nic, control, doorbells, spinner, spin);
  return { rest, control, doorbells, rung, state: () => control[WORD_STATE] };
}

describe('the rest of a NIC in a thread of its own', () => {
  it('begins asleep, wakes up for a poll, and sleeps when there was nothing to do', () => {
    const { rest, state } = setUp(false);
    expect(state()).toBe(ASLEEP);
    expect(rest.begin()).toBe(false);
    expect(state()).toBe(AWAKE);
    expect(rest.mayBlock(0, true)).toBe(false);
    expect(state()).toBe(AWAKE);
    expect(rest.mayBlock(1000, false)).toBe(true);
    expect(state()).toBe(ASLEEP);
  });

  it('does not fall asleep over a doorbell', () => {
    const { rest, doorbells, rung, state } = setUp(false);
    rest.begin();
    doorbells.ring(17);
    expect(rest.mayBlock(0, false)).toBe(false);
    expect(state()).toBe(AWAKE);
    expect(rest.begin()).toBe(true);
    expect(rung).toEqual([17]);
  });

  it('looks again for a while after work, where it may spin', () => {
    const { rest } = setUp(true);
    rest.begin();
    rest.mayBlock(0, true);
    expect(rest.mayBlock(5_000, false)).toBe(false);
    expect(rest.mayBlock(SPIN_MAX_NS - 1, false)).toBe(false);
    expect(rest.mayBlock(SPIN_MAX_NS + 1, false)).toBe(true);
  });

  it('lets one NIC of a process spin, and the next when that has found work, sleeps or is closed', () => {
    const spinner = new Int32Array(shared(4));
    const [a, b] = [setUp(true, spinner).rest, setUp(true, spinner).rest];
    for (const rest of [a, b]) {
      rest.begin();
      rest.mayBlock(0, true);
    }
    expect(a.mayBlock(1_000, false)).toBe(false);
    expect(b.mayBlock(1_000, false)).toBe(true); // Sleeps: `a` has the token.
    a.mayBlock(2_000, true);
    b.begin();
    b.mayBlock(2_000, true);
    expect(b.mayBlock(3_000, false)).toBe(false);
    expect(a.mayBlock(3_000, false)).toBe(true);
    b.close();
    a.begin();
    a.mayBlock(4_000, true);
    expect(a.mayBlock(5_000, false)).toBe(false);
  });
});
