/** What every rate control must do, whatever is told to it. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Acknowledgement, RateControl } from '../../src/dcqcn/rate-control.js';
import { createRateControl, type RateControlOptions, rateControlSettings } from '../../src/dcqcn/rate-controls.js';
import { INT_NONE, IntEcho, nanoseconds } from '../../src/packet/int-trailer.js';

/** An acknowledgement with an echo of the way: a link that sends `sentBps` of 100 Gb/s, with a queue. */
export function acknowledgement(
  rttNs: number,
  now: number,
  told: Partial<Acknowledgement> & { queueBytes?: number; sentBps?: number; digest?: number } = {},
): Acknowledgement {
  const { queueBytes = 0, sentBps = 100e9, digest = 0, ...rest } = told;
  const echo = new IntEcho();
  echo.hopCount = 1;
  echo.digest = digest;
  echo.isMarked = (rest.markedPackets ?? 0) > 0;
  const sentBytes = Math.round((now * sentBps) / 8e9) % 2 ** 32;
  Object.assign(echo.hops[0], { timeNs: nanoseconds(now), sentBytes, queueBytes, rateBps: 100e9 });
  return { bytes: 1024, rttNs, marks: 0, receivedPackets: 1, markedPackets: 0, echo, ...rest };
}

/** An echo, and what it acknowledges. */
function tell(control: RateControl, ack: Acknowledgement, now: number): void {
  if (ack.echo !== undefined) control.onEcho(ack.receivedPackets, ack.rttNs, ack.echo, now);
  control.onAck(ack, now);
}

export interface RateControlBounds {
  readonly options: RateControlOptions;
  readonly minimumRateBps: number;
  readonly maximumRateBps: number;
}

/** What may happen to a rate control: it is asked, packets are sent, notifications and round trips come in. */
type Happening =
  | { readonly kind: 'wait' | 'cnp'; readonly ns: number }
  | { readonly kind: 'sent' | 'rtt' | 'ack'; readonly ns: number; readonly value: number };

const happening: fc.Arbitrary<Happening> = fc.oneof(
  fc.record({ kind: fc.constantFrom('wait' as const, 'cnp' as const), ns: fc.integer({ min: 0, max: 1e6 }) }),
  fc.record({
    kind: fc.constant('sent' as const),
    ns: fc.integer({ min: 0, max: 1e5 }),
    value: fc.integer({ min: 78, max: 9000 }),
  }),
  fc.record({
    kind: fc.constantFrom('rtt' as const, 'ack' as const),
    ns: fc.integer({ min: 0, max: 1e5 }),
    value: fc.integer({ min: 1, max: 1e7 }),
  }),
);

export function describeRateControl({ options, minimumRateBps, maximumRateBps }: RateControlBounds): void {
  const create = () => createRateControl(rateControlSettings(options));

  /** Plays the history; asks for the rate after every step if `curious`. Returns the time and the control. */
  function play(history: readonly Happening[], curious: boolean) {
    const control = create();
    const rates: number[] = [];
    let now = 1000;
    for (const step of history) {
      now += step.ns;
      if (step.kind === 'cnp') control.onCnp(now);
      else if (step.kind === 'sent') control.onSent(step.value, now);
      else if (step.kind === 'rtt') control.onRttSample(step.value, now);
      else if (step.kind === 'ack')
        tell(
          control,
          acknowledgement(step.value, now, {
            markedPackets: step.value & 1,
            queueBytes: step.value,
            digest: step.value & 255,
          }),
          now,
        );
      if (curious) rates.push(control.rateBps(now), control.targetRateBps(now));
    }
    return { control, now, rates };
  }

  describe(`the contract of ${options.name}`, () => {
    it('keeps current and target rate within its bounds, and alpha a share', () => {
      fc.assert(
        fc.property(fc.array(happening, { maxLength: 200 }), (history) => {
          const { control, now, rates } = play(history, true);
          for (const rate of rates) {
            expect(rate).toBeGreaterThanOrEqual(minimumRateBps);
            expect(rate).toBeLessThanOrEqual(maximumRateBps);
          }
          const alpha = control.alpha(now);
          if (!Number.isNaN(alpha)) {
            expect(alpha).toBeGreaterThanOrEqual(0);
            expect(alpha).toBeLessThanOrEqual(1);
          }
        }),
      );
    });

    it('has the same rate whether it was asked in between or not', () => {
      fc.assert(
        fc.property(fc.array(happening, { maxLength: 200 }), (history) => {
          const asked = play(history, true);
          const { control, now } = play(history, false);
          expect(control.rateBps(now)).toBe(asked.control.rateBps(now));
          expect(control.targetRateBps(now)).toBe(asked.control.targetRateBps(now));
          expect(control.alpha(now)).toBe(asked.control.alpha(now));
        }),
      );
    });

    it('says the same when asked twice', () => {
      const { control, now } = play(
        [
          { kind: 'cnp', ns: 0 },
          { kind: 'rtt', ns: 50_000, value: 800_000 },
        ],
        false,
      );
      expect([control.rateBps(now + 1e6), control.alpha(now + 1e6)]).toEqual([
        control.rateBps(now + 1e6),
        control.alpha(now + 1e6),
      ]);
    });

    it('says of a notification whether it lowered the rate', () => {
      const control = create();
      const before = control.rateBps(0);
      const handled = control.onCnp(0);
      expect(control.rateBps(0) < before).toBe(handled);
    });

    it('wants samples of round trips, or echoes, exactly if they can change its rate', () => {
      const control = create();
      const allowed = (now: number) => [control.rateBps(now), control.windowBytes(now)].join();
      const before = allowed(0);
      for (let i = 1; i <= 10; i++) {
        control.onRttSample(1e6 * i, 1e6 * i);
        tell(control, acknowledgement(1e6 * i, 1e6 * i, { markedPackets: 1, queueBytes: 1e6, digest: 200 }), 1e6 * i);
      }
      const isTold = Number.isFinite(control.rttSampleBytes) || control.intKind !== INT_NONE;
      expect(isTold).toBe(allowed(1e7) !== before);
    });

    it('limits the bytes in flight exactly if it says so, and never to nothing', () => {
      fc.assert(
        fc.property(fc.array(happening, { maxLength: 200 }), (history) => {
          const { control, now } = play(history, false);
          expect(Number.isFinite(control.windowBytes(now))).toBe(control.usesWindow);
          expect(control.windowBytes(now)).toBeGreaterThan(0);
        }),
      );
    });

    it('wants its packets marked exactly if notifications, or echoed marks, can change its rate', () => {
      const rateAfter = (markedPackets: number) => {
        const control = create();
        for (let now = 10_000; now < 400_000; now += 10_000) {
          tell(control, acknowledgement(59_000, now, { markedPackets }), now);
        }
        return `${control.rateBps(400_000)} ${control.windowBytes(400_000)}`;
      };
      expect(create().usesEcn).toBe(create().onCnp(0) || rateAfter(1) !== rateAfter(0));
    });
  });
}
