import { describe, expect, it } from 'vitest';
import { LinkPacer } from '../../src/live/link-pacer.js';

const MS = 1e6;
const FRAME = 4170;
const PER_SECOND = 1e9 / 8 / (FRAME + 24);

/** Frames sent by `untilNs` when there are always some and the driver comes back every `everyNs`. */
function sentBy(pacer: LinkPacer, everyNs: number, untilNs: number, fromNs = 0): number {
  let sent = 0;
  for (let now = fromNs; now <= untilNs; now += everyNs) {
    while (pacer.mayStart(now)) {
      pacer.sent(FRAME);
      sent++;
    }
  }
  return sent;
}

describe('link pacer', () => {
  it.each([0.01, 0.3, 1, 5])('keeps the rate exactly when looked after every %d ms', (everyMs) => {
    const lastLookMs = Math.floor(100 / everyMs) * everyMs;
    const sent = sentBy(new LinkPacer(1e9), everyMs * MS, 100 * MS);
    expect(Math.abs(sent - (PER_SECOND * lastLookMs) / 1000)).toBeLessThan(2);
  });

  it('catches up 10 ms at most', () => {
    const pacer = new LinkPacer(1e9);
    sentBy(pacer, MS, 10 * MS);
    expect(Math.abs(sentBy(pacer, MS, 500 * MS, 500 * MS) - PER_SECOND / 100)).toBeLessThan(2);
  });

  it('does not make up for time in which there was nothing to send', () => {
    const pacer = new LinkPacer(1e9);
    pacer.sent(FRAME);
    expect(pacer.mayStart(MS)).toBe(true);
    pacer.idle();
    expect(sentBy(pacer, MS, 5 * MS, 5 * MS)).toBe(1);
  });

  it('says when it will be free, and nothing while it rests', () => {
    const pacer = new LinkPacer(1e9);
    expect(pacer.nextNs).toBe(Number.POSITIVE_INFINITY);
    pacer.mayStart(100);
    pacer.sent(101);
    expect(pacer.nextNs).toBe(100 + 125 * 8);
    expect([pacer.mayStart(1099), pacer.mayStart(1100)]).toEqual([false, true]);
  });

  it('takes no time at all without a rate', () => {
    const pacer = new LinkPacer(Number.POSITIVE_INFINITY);
    for (let i = 0; i < 100; i++) {
      expect(pacer.mayStart(7)).toBe(true);
      pacer.sent(FRAME);
    }
  });
});
