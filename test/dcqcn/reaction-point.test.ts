/** The reaction point against sequences worked out by hand; rates in Gb/s, times in us. */

import { describe, expect, it } from 'vitest';
import { rateControlSettings } from '../../src/dcqcn/rate-controls.js';
import { ReactionPoint, type ReactionPointParameters } from '../../src/dcqcn/reaction-point.js';

const GBPS = 1e9;
const US = 1000;
const TIMER = 55;
const G = 1 / 256;

/** Paper parameters at 40 Gb/s, with changes; each notification cuts. */
function reactionPoint(changes: Partial<ReactionPointParameters> = {}) {
  const settings = rateControlSettings({ name: 'dcqcn', decreaseIntervalNs: 0, ...changes });
  const rp = new ReactionPoint(settings as unknown as ReactionPointParameters);
  return {
    cnp: (us: number) => rp.onCnp(us * US),
    sent: (bytes: number, us: number) => rp.onSent(bytes, us * US),
    rate: (us: number) => rp.rateBps(us * US) / GBPS,
    target: (us: number) => rp.targetRateBps(us * US) / GBPS,
    alpha: (us: number) => rp.alpha(us * US),
  };
}

/** Two notifications at once: R_C 10, R_T 20 Gb/s, alpha 1, all timers at 0. */
function cutTwice(changes: Partial<ReactionPointParameters> = {}) {
  const rp = reactionPoint(changes);
  rp.cnp(0);
  rp.cnp(0);
  return rp;
}

/** The rate after each of the first `count` expirations of the rate timer. */
function afterTimer(rp: ReturnType<typeof reactionPoint>, count: number): number[] {
  return Array.from({ length: count }, (_, i) => rp.rate((i + 1) * TIMER));
}

describe('before the first notification', () => {
  it('the rate is the line rate, and sending changes nothing', () => {
    const rp = reactionPoint();
    rp.sent(1e9, 10);
    expect([rp.rate(1e6), rp.target(1e6), rp.alpha(1e6)]).toEqual([40, 40, 1]);
  });
});

describe('a cut', () => {
  it('takes alpha/2 of the rate and leaves the old rate as the target', () => {
    const rp = reactionPoint();
    expect(rp.cnp(0)).toBe(true);
    expect([rp.rate(0), rp.target(0), rp.alpha(0)]).toEqual([20, 40, 1]);
    rp.cnp(1);
    expect([rp.rate(1), rp.target(1), rp.alpha(1)]).toEqual([10, 20, 1]);
  });

  it('uses alpha as it was before the notification, as in the paper', () => {
    const rp = reactionPoint({ initialAlpha: 0.5 });
    rp.cnp(0);
    expect(rp.rate(0)).toBe(40 * 0.75);
    expect(rp.alpha(0)).toBe(0.5 * (1 - G) + G);
  });

  it('uses alpha as it is after it, as ns3-rdma does, when told so: its first cut is 25.1 %', () => {
    const rp = reactionPoint({ initialAlpha: 0.5, alphaBeforeCut: 1, gain: G });
    rp.cnp(0);
    expect(1 - rp.rate(0) / 40).toBeCloseTo(0.251, 4);
  });

  it('never takes more than maximumDecrease, nor goes below the minimum', () => {
    const rp = reactionPoint({ maximumDecrease: 0.25, minimumRateBps: 20 * GBPS });
    rp.cnp(0);
    expect(rp.rate(0)).toBe(30);
    rp.cnp(0);
    rp.cnp(0);
    expect(rp.rate(0)).toBe(20);
  });

  it('is by decreaseFactor: rpg_gd 10 divides by 1', () => {
    const rp = reactionPoint({ initialAlpha: 0.125, decreaseFactor: 1 });
    rp.cnp(0);
    expect(rp.rate(0)).toBe(35);
  });

  it('at the first notification may set a rate instead', () => {
    const rp = reactionPoint({ firstCnpRateBps: 8 * GBPS });
    rp.cnp(0);
    expect([rp.rate(0), rp.target(0)]).toEqual([8, 40]);
    rp.cnp(1);
    expect(rp.rate(1)).toBe(4);
  });

  it('may be none at all at the first notification: the line rate is set', () => {
    const rp = reactionPoint({ firstCnpRateBps: 40 * GBPS, forgetsAtLineRate: 0 });
    rp.cnp(0);
    expect(rp.rate(0)).toBe(40);
    rp.cnp(1);
    expect(rp.rate(1)).toBe(20);
  });

  it('happens once in decreaseIntervalNs: the sender coalesces', () => {
    const rp = reactionPoint({ decreaseIntervalNs: 50 * US });
    expect([rp.cnp(0), rp.cnp(10), rp.cnp(49.9), rp.cnp(50)]).toEqual([true, false, false, true]);
    expect(rp.target(50)).toBe(20);
  });

  it('free-running happens at ticks, whenever in between notifications came, and however many', () => {
    const rp = reactionPoint({ decreaseIntervalNs: 50 * US, decreasePhase: 1, rateTimerNs: 1e9 });
    expect(rp.cnp(10)).toBe(true); // The first cuts at once and starts the timer.
    expect(rp.rate(59.9)).toBe(20);
    expect([rp.cnp(11), rp.cnp(30), rp.cnp(59)]).toEqual([true, false, false]);
    expect(rp.rate(59.9)).toBe(20);
    const second = rp.rate(60);
    expect(second).toBeCloseTo(10, 1);
    expect(rp.rate(200)).toBe(second); // Ticks without a notification do nothing.
    expect(rp.cnp(209)).toBe(true);
    expect(rp.rate(209.9)).toBe(second);
    expect(rp.rate(210)).toBeLessThan(second); // A microsecond after it: since the last cut it would have been at once.
  });

  it('free-running finds the rate of its tick, not of the time when somebody asks', () => {
    const asked = reactionPoint({ decreaseIntervalNs: 50 * US, decreasePhase: 1 });
    const silent = reactionPoint({ decreaseIntervalNs: 50 * US, decreasePhase: 1 });
    for (const rp of [asked, silent]) {
      rp.cnp(0);
      rp.cnp(20);
    }
    for (let us = 21; us < 400; us++) asked.rate(us);
    expect(silent.rate(400)).toBe(asked.rate(400));
    expect(silent.alpha(400)).toBe(asked.alpha(400));
  });
});

describe('a limiter that is not forgotten at the line rate', () => {
  const held = {
    forgetsAtLineRate: 0,
    firstCnpRateBps: 40 * GBPS,
    decreaseIntervalNs: 50 * US,
    decreasePhase: 1,
  } as const;

  it('cuts at a notification every 56 us', () => {
    const rp = reactionPoint(held);
    for (let us = 0; us < 10_000; us += 56) rp.cnp(us);
    expect(rp.rate(10_000)).toBeLessThan(1);
  });

  it('keeps its alpha, and rests for an hour at no cost', () => {
    const rp = reactionPoint({ ...held, gain: 0.5 });
    rp.cnp(0);
    expect(rp.rate(50)).toBe(20);
    const hourUs = 3.6e9;
    expect(rp.rate(hourUs)).toBe(40);
    expect(rp.alpha(hourUs)).toBe(0);
    rp.cnp(hourUs);
    expect(rp.rate(hourUs + 50)).toBeGreaterThan(39.9); // With the alpha of then, not the initial one.
  });
});

describe('alpha', () => {
  it('decays by 1 - g every interval without a notification', () => {
    const rp = cutTwice();
    expect(rp.alpha(54.9)).toBe(1);
    expect(rp.alpha(55)).toBe(1 - G);
    expect(rp.alpha(164.9)).toBe((1 - G) ** 2);
    expect(rp.alpha(550)).toBeCloseTo((1 - G) ** 10, 12);
  });

  it('has its timer restarted by a notification', () => {
    const rp = reactionPoint();
    rp.cnp(0);
    rp.cnp(40);
    expect(rp.alpha(94.9)).toBe(1);
    expect(rp.alpha(95)).toBe(1 - G);
  });

  it('by timer rises at the tick after a notification, however many came, and falls at the others', () => {
    const rp = reactionPoint({ alphaByTimer: 1, alphaIntervalNs: 10 * US, initialAlpha: 0.5, decreaseIntervalNs: 1e9 });
    rp.cnp(0);
    expect(rp.alpha(9.9)).toBe(0.5);
    const once = 0.5 * (1 - G) + G;
    expect(rp.alpha(10)).toBe(once);
    expect(rp.cnp(12)).toBe(false);
    rp.cnp(13);
    expect(rp.alpha(19)).toBe(once); // The timer's phase does not move.
    const twice = once * (1 - G) + G;
    expect(rp.alpha(20)).toBe(twice);
    expect(rp.alpha(40)).toBeCloseTo(twice * (1 - G) ** 2, 12);
  });
});

describe('recovery by the rate timer', () => {
  it('halves the distance to the target in fast recovery, then raises the target too', () => {
    // R_T 20: 15, 17.5, 18.75, 19.375; the fifth event raises R_T to 20.04, the sixth to 20.08.
    expect(afterTimer(cutTwice(), 6)).toEqual([15, 17.5, 18.75, 19.375, 19.7075, 19.89375]);
  });

  it('is the same whether asked at every event or only at the end', () => {
    const asked = cutTwice({ hyperIncreaseBps: 0.4 * GBPS, byteCounterBytes: 0 });
    const stepwise = afterTimer(asked, 40);
    expect(cutTwice({ hyperIncreaseBps: 0.4 * GBPS, byteCounterBytes: 0 }).rate(40 * TIMER)).toBe(stepwise[39]);
  });

  it('starts over at a cut', () => {
    const rp = cutTwice();
    rp.rate(54);
    rp.cnp(54); // R_C 5, R_T 10
    expect(rp.rate(108.9)).toBe(5);
    expect(rp.rate(109)).toBe(7.5);
  });

  it('with a threshold of one raises the target from the first event on', () => {
    expect(afterTimer(cutTwice({ fastRecoveryStages: 1 }), 1)).toEqual([(10 + 20.04) / 2]);
  });
});

describe('recovery by the byte counter', () => {
  const FAST = { byteCounterBytes: 1e6, rateTimerNs: 1e9 };

  it('counts the bytes sent since the cut', () => {
    const rp = cutTwice(FAST);
    rp.sent(999_999, 1);
    expect(rp.rate(1)).toBe(10);
    rp.sent(1, 1);
    expect(rp.rate(1)).toBe(15);
    rp.sent(1e6, 2);
    expect(rp.rate(2)).toBe(17.5);
  });

  it('carries the remainder over, and a large packet may count twice', () => {
    const rp = cutTwice(FAST);
    rp.sent(1_400_000, 1);
    rp.sent(600_000, 1);
    expect(rp.rate(1)).toBe(17.5);
    rp.sent(2e6, 1);
    expect(rp.rate(1)).toBe(19.375);
  });

  it('starts over at a cut', () => {
    const rp = cutTwice(FAST);
    rp.sent(999_999, 1);
    rp.cnp(1);
    rp.sent(999_999, 1);
    expect(rp.rate(1)).toBe(5);
  });

  it('can be switched off', () => {
    const rp = cutTwice({ ...FAST, byteCounterBytes: 0 });
    rp.sent(1e9, 1);
    expect(rp.rate(1)).toBe(10);
  });
});

describe('hyper increase', () => {
  const HYPER = { hyperIncreaseBps: 0.4 * GBPS, fastRecoveryStages: 1 };

  it('begins when both stages are past the threshold, and grows with the smaller one', () => {
    const rp = cutTwice({ ...HYPER, byteCounterBytes: 1e6 });
    rp.rate(3 * TIMER); // Three timer events: the byte counter is at 0, so all are additive.
    expect(rp.target(3 * TIMER)).toBeCloseTo(20.12, 9);
    rp.sent(1e6, 3 * TIMER); // byte stage 1: not past the threshold.
    expect(rp.target(3 * TIMER)).toBeCloseTo(20.16, 9);
    rp.sent(1e6, 3 * TIMER); // byte stage 2, i = 1
    expect(rp.target(3 * TIMER)).toBeCloseTo(20.56, 9);
    rp.sent(1e6, 3 * TIMER); // byte stage 3, i = 2
    expect(rp.target(3 * TIMER)).toBeCloseTo(21.36, 9);
  });

  it('without a byte counter goes by the timer alone', () => {
    const rp = cutTwice({ ...HYPER, byteCounterBytes: 0 });
    expect([1, 2, 3].map((k) => rp.target(k * TIMER))).toEqual([20.04, 20.44, 21.24]);
  });

  it('may take equal steps', () => {
    const rp = cutTwice({ ...HYPER, byteCounterBytes: 0, hyperIncreaseGrows: 0 });
    expect([1, 2, 3].map((k) => rp.target(k * TIMER))).toEqual([20.04, 20.44, 20.84]);
  });

  it('does not exist in the fluid model: R_HAI 0', () => {
    const rp = cutTwice({ ...HYPER, hyperIncreaseBps: 0, byteCounterBytes: 0 });
    expect([1, 2, 3].map((k) => Math.round(rp.target(k * TIMER) * 1e6) / 1e6)).toEqual([20.04, 20.08, 20.12]);
  });
});

describe('the target at consecutive cuts', () => {
  /** The target after a cut, one kind of event (or none), and another cut. */
  function targetAfter(clamp: Partial<ReactionPointParameters>, event: 'timer' | 'bytes' | 'none'): number {
    const rp = reactionPoint({ ...clamp, byteCounterBytes: 1e6 });
    rp.cnp(0); // R_C 20, R_T 40
    if (event === 'bytes') rp.sent(1e6, 1); // R_C 30
    const us = event === 'timer' ? TIMER : 1; // R_C 30
    rp.cnp(us);
    return rp.target(us);
  }
  const each = (clamp: Partial<ReactionPointParameters>) =>
    (['none', 'timer', 'bytes'] as const).map((event) => targetAfter(clamp, event));

  it('clamp_tgt_rate: is always the rate before the cut', () => {
    expect(each({ clampTargetRate: 1 })).toEqual([20, 30, 30]);
  });

  it('clamp_tgt_rate_after_time_inc: only if there was an increase in between', () => {
    expect(each({ clampTargetRate: 0, clampTargetRateAfterTimeIncrease: 1 })).toEqual([40, 30, 30]);
  });

  it('neither: only if the byte counter ran out in between', () => {
    expect(each({ clampTargetRate: 0, clampTargetRateAfterTimeIncrease: 0 })).toEqual([40, 40, 30]);
  });
});

describe('back at the line rate', () => {
  it('the limiter is gone, and the next notification finds the initial alpha', () => {
    const rp = reactionPoint({ hyperIncreaseBps: GBPS, byteCounterBytes: 0 });
    rp.cnp(0);
    expect(rp.alpha(1000)).toBeLessThan(1);
    expect([rp.rate(10_000), rp.alpha(10_000)]).toEqual([40, 1]);
    rp.cnp(10_000);
    expect(rp.rate(10_000)).toBe(20);
  });

  it('after a long rest is found in no time', () => {
    const rp = reactionPoint({ linkRateBps: 400e9, minimumRateBps: 1e6, additiveIncreaseBps: 5e6 });
    for (let i = 0; i < 30; i++) rp.cnp(0);
    expect(rp.rate(0)).toBe(0.001);
    expect(rp.rate(1e12)).toBe(400);
  });
});

describe('parameters that contradict each other', () => {
  it.each([
    { minimumRateBps: 41 * GBPS },
    { linkRateBps: 1e12, additiveIncreaseBps: 1e3 },
    { firstCnpRateBps: 40 * GBPS, forgetsAtLineRate: 1 },
    { firstCnpRateBps: 100 * GBPS },
  ])('are refused: %o', (changes) => {
    expect(() => reactionPoint(changes)).toThrow(expect.objectContaining({ code: 'ERR_ROCE_CONFLICT' }));
  });
});
