import { describe, expect, it } from 'vitest';
import { DoorbellRing } from '../../src/memory/ring/doorbell-ring.js';

function drained(ring: DoorbellRing): Array<number | 'all'> {
  const rung: Array<number | 'all'> = [];
  ring.drain(
    (qpn) => rung.push(qpn),
    () => rung.push('all'),
  );
  return rung;
}

const create = () => DoorbellRing.create((bytes) => new SharedArrayBuffer(bytes), 4);

describe('doorbell ring', () => {
  it('hands over each QPN in order, once', () => {
    const ring = create();
    expect(ring.isRinging).toBe(false);
    for (const qpn of [17, 18, 17]) ring.ring(qpn);
    expect(ring.isRinging).toBe(true);
    expect(drained(ring)).toEqual([17, 18, 17]);
    expect(ring.isRinging).toBe(false);
    expect(drained(ring)).toEqual([]);
  });

  it('takes a doorbell that waits already for the next one of the same QP', () => {
    const ring = create();
    for (let i = 0; i < 100; i++) ring.ring(17);
    expect(drained(ring)).toEqual([17]);
    ring.ring(17);
    expect(drained(ring)).toEqual([17]);
  });

  it('does not take a doorbell that is being answered for a new one', () => {
    const ring = create();
    ring.ring(17);
    const rung: number[] = [];
    ring.drain(
      (qpn) => {
        rung.push(qpn);
        if (rung.length === 1) ring.ring(17);
      },
      () => {},
    );
    ring.drain(
      (qpn) => rung.push(qpn),
      () => {},
    );
    expect(rung).toEqual([17, 17]);
  });

  it('rings for all when there are more than it holds', () => {
    const ring = create();
    for (let qpn = 20; qpn < 30; qpn++) ring.ring(qpn);
    expect(drained(ring)).toEqual([20, 21, 22, 23, 'all']);
    expect(ring.isRinging).toBe(false);
  });
});
