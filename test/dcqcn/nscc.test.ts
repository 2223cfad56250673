/** NSCC against a second computation of its published table, and quick adapt case by case. */

import { describe, expect, it } from 'vitest';
import { Nscc } from '../../src/dcqcn/nscc.js';
import { rateControlSettings } from '../../src/dcqcn/rate-controls.js';
import { IntEcho } from '../../src/packet/int-trailer.js';

const T = 12_000;
const MSS = 1024;
const BDP = 150_000;
const create = (more: object = {}) =>
  new Nscc(rateControlSettings({ name: 'nscc', ...more }) as never as ConstructorParameters<typeof Nscc>[0]);

/** Feeds one packet's echo. */
function feed(control: Nscc, delayNs: number, isMarked: boolean, now: number, packets = 1, residenceNs = 0): number {
  const echo = new IntEcho();
  echo.isMarked = isMarked;
  echo.residenceNs = residenceNs;
  control.onEcho(packets, T + delayNs + residenceNs, echo, now);
  return control.windowBytes(now);
}

/** A control whose window is far from its bounds, at time `from`. */
function atHalf(more: object = {}): { control: Nscc; now: number } {
  const control = create(more);
  let now = 1e6;
  for (; control.windowBytes(now) > BDP / 2; now += 500) feed(control, 3 * T, true, now);
  return { control, now };
}

describe('nscc', () => {
  it('has the windows of the table, packet by packet', () => {
    for (const targetRtts of [1, 0.75]) {
      const control = create({ targetRtts });
      const target = targetRtts * T;
      let [window, inc, average, adjusted, eta, decreased, bytes, empty] = [1.5 * BDP, 0, 0, -1e9, -1e9, -1e9, 0, 0];
      let kinds = 0;
      for (let i = 0; i < 6000; i++) {
        const now = 1e6 + 150 * i;
        const delay = Math.max(0, Math.round(T * (0.9 + 1.1 * Math.sin(i / 140))));
        const isMarked = delay > 0.8 * T && i % 3 !== 0;
        average = average * (1 - 0.0125) + 0.0125 * delay;
        if (!isMarked && delay < target) {
          empty = delay < 1000 ? empty + MSS : 0;
          if (empty > window) window += 0.25 * MSS;
          else inc += ((4 * MSS * (target / T)) / target) * MSS * (target - delay);
          kinds |= empty > window ? 1 : 2;
        } else if (!isMarked) {
          inc += 5 * MSS * MSS;
          kinds |= 4;
        } else {
          empty = 0;
          if (delay >= target && average > target && now - decreased >= T) {
            decreased = now;
            window *= Math.max(1 - (0.8 * (average - target)) / average, 0.5);
            kinds |= 8;
          }
        }
        window = Math.min(1.5 * BDP, Math.max(MSS, window));
        bytes += MSS;
        if (bytes >= 8 * MSS || now - adjusted >= T) {
          window += inc / window;
          [inc, bytes, adjusted] = [0, 0, now];
          if (now - eta >= T) [window, eta] = [window + 0.15 * MSS, now];
          window = Math.min(1.5 * BDP, window);
        }
        expect(feed(control, delay, isMarked, now) / window).toBeCloseTo(1, 9);
      }
      expect(kinds & 14).toBe(14);
    }
  });

  it('grows by four packets a round trip on a path with little delay, and by five with much', () => {
    for (const [delayNs, packets] of [
      [1000, 4 * (1 - 1000 / T) + 0.15],
      [T, 5.15],
    ]) {
      const { control, now } = atHalf();
      const before = control.windowBytes(now);
      const perRound = Math.round(before / MSS);
      for (let i = 1; i <= perRound; i++) feed(control, delayNs, false, now + 1e5 + (i * T) / perRound);
      const grown = (control.windowBytes(now) - before) / MSS;
      expect(grown).toBeGreaterThan(0.8 * packets);
      expect(grown).toBeLessThan(1.1 * packets);
    }
  });

  it('does not move at marks without delay, nor at the time a packet stands at the peer', () => {
    const { control, now } = atHalf();
    feed(control, 0, false, now + T, 8);
    const before = control.windowBytes(now);
    for (let i = 0; i < 7; i++) feed(control, 100, true, now + T + 100 + i);
    expect(control.windowBytes(now)).toBe(before);
    for (let i = 0; i < 50; i++) feed(control, 0, true, now + T + 200 + i, 0, 20 * T);
    expect(control.averageDelayNs).toBeLessThan(3 * T);
    expect(control.windowBytes(now)).toBe(before);
  });

  it('becomes what arrived when packets were cut and little else came, and ignores what was in flight', () => {
    const control = create();
    feed(control, 0, false, 1e6);
    for (let i = 0; i < 4; i++) control.onTrimmed(MSS, 1e6 + 100 + i);
    expect(control.windowBytes(0)).toBe(1.5 * BDP - 4 * MSS);
    feed(control, 0, false, 1e6 + 1000, 5);
    const inFlight = control.windowBytes(0);
    feed(control, 0, false, 1e6 + 2 * T);
    expect(control.windowBytes(0)).toBe(6 * MSS);
    for (let sent = 0; sent + MSS < inFlight; sent += MSS) feed(control, 3 * T, true, 1e6 + 3 * T);
    expect(control.windowBytes(0)).toBe(6 * MSS);
  });

  it('does not adapt quickly without a cut packet or a very long delay', () => {
    const control = create();
    for (let i = 0; i < 5; i++) feed(control, 3.9 * T, false, 1e6 + 3 * T * i);
    expect(control.windowBytes(0)).toBeGreaterThan(BDP);
    feed(control, 4.1 * T, false, 1e6 + 3 * T * 6);
    feed(control, 4.1 * T, false, 1e6 + 3 * T * 7);
    expect(control.windowBytes(0)).toBeLessThan(4 * MSS);
  });
});
