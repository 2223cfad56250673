import { expect, test } from 'vitest';
import { RdmaFallback } from '../../src/cm/rdma-fallback.js';
import { SeededRandom } from '../../src/core/random.js';

const SECOND = 1e9;

function path(seed = 1): RdmaFallback {
  return new RdmaFallback({ random: new SeededRandom(seed).stream('path') });
}

/** Fails at `now` and returns how long RDMA is held down. */
function holdDown(it: RdmaFallback, now: number): number {
  it.onFailure(now);
  return it.deadlineNs - now;
}

test('works on RDMA until it fails, then on TCP, and returns by hold-down, probe and ramp', () => {
  const it = path();
  expect(it.order).toEqual(['rdma', 'tcp']);
  it.onFailure(0);
  expect([it.state, it.order[0]]).toEqual(['HOLD_DOWN', 'tcp']);
  it.onDeadline(it.deadlineNs - 1);
  expect(it.state).toBe('HOLD_DOWN');
  it.onDeadline(it.deadlineNs);
  expect([it.state, it.order[0]]).toEqual(['PROBE', 'tcp']);
  it.onProbe(true, 0);
  expect([it.state, it.order[0]]).toEqual(['RAMP', 'tcp']);
  it.onFailbackDone(0);
  expect([it.state, it.order[0]]).toEqual(['RDMA', 'rdma']);
});

/** Bases of twelve hold-downs: good and bad probes in turn, each with the next failure at once. Throws where one is not within 20 % of its base. */
function checkDoubling(it: RdmaFallback): void {
  let base = 10 * SECOND;
  let now = 0;
  for (let i = 0; i < 12; i++) {
    const held = holdDown(it, now);
    expect(held).toBeGreaterThanOrEqual(0.8 * base);
    expect(held).toBeLessThanOrEqual(1.2 * base);
    now = it.deadlineNs;
    it.onDeadline(now);
    it.onProbe(i % 2 === 0, now); // Bad probes double as failures of the path do.
    if (it.state === 'RAMP') it.onFailbackDone(now);
    else {
      base = Math.min(2 * base, 600 * SECOND);
      now = it.deadlineNs;
      it.onDeadline(now);
      it.onProbe(true, now);
      it.onFailbackDone(now);
    }
    base = Math.min(2 * base, 600 * SECOND);
  }
}

function checkOutOfStep(paths: readonly RdmaFallback[]): void {
  expect(new Set(paths.map((it) => holdDown(it, 0))).size).toBe(paths.length);
}

test('hold-down is 10 s with 20 % jitter, doubles with each failure to at most 10 min', () => checkDoubling(path()));

test('paths of different seeds do not return in step', () => checkOutOfStep([1, 2, 3, 4, 5].map(path)));

test('negative control: the checks refuse a hold-down that does not double, one without a limit, and one without jitter', () => {
  const random = new SeededRandom(1).stream('path');
  expect(() => checkDoubling(new RdmaFallback({ random, holdDownMaxNs: 10 * SECOND }))).toThrow();
  expect(() => checkDoubling(new RdmaFallback({ random, holdDownMaxNs: 1e6 * SECOND }))).toThrow();
  expect(() => checkOutOfStep([1, 2].map(() => new RdmaFallback({ random: { u32: () => 7 } })))).toThrow();
});

test('nothing is worth keeping ten minutes after the last hold-down, and before that everything is', () => {
  const it = path();
  it.onFailure(0);
  const until = it.deadlineNs;
  for (const [minutes, isClean] of [
    [0, false],
    [9, false],
    [10, true],
  ] as const)
    expect(it.isClean(until + minutes * 60 * SECOND)).toBe(isClean);
  it.onDeadline(until + 500 * SECOND);
  it.onProbe(true, until + 500 * SECOND);
  it.onFailbackDone(until + 500 * SECOND);
  expect(it.isClean(until + 600 * SECOND)).toBe(false);
  expect(it.isClean(until + 1100 * SECOND)).toBe(true);
});

test('ten clean minutes reset the hold-down; nine do not', () => {
  for (const [minutes, expected] of [
    [9, 20],
    [10, 10],
  ] as const) {
    const it = path();
    const back = holdDown(it, 0);
    it.onDeadline(back);
    it.onProbe(true, back);
    it.onFailbackDone(back);
    expect(Math.abs(holdDown(it, back + minutes * 60 * SECOND) / SECOND - expected)).toBeLessThanOrEqual(
      0.2 * expected,
    );
  }
});

test('failures while it is held down change nothing', () => {
  const it = path();
  it.onFailure(0);
  const until = it.deadlineNs;
  it.onFailure(1);
  expect(it.deadlineNs).toBe(until);
  expect(it.failures).toBe(1);
});

test('out of service it uses nothing but TCP, whatever happens, until it is restored and probed', () => {
  const it = path();
  it.drain();
  it.onFailure(0);
  it.onDeadline(1e15);
  it.onProbe(true, 0);
  it.onFailbackDone(0);
  expect([it.state, it.order]).toEqual(['DRAINED', ['tcp']]);
  it.restore();
  expect(it.state).toBe('PROBE');
});

test('what happened to the way to one host says nothing of the next one; RDMA that is out of service stays so', () => {
  const it = path();
  it.onFailure(0);
  it.onMoved();
  expect([it.state, it.order[0], it.deadlineNs]).toEqual(['RDMA', 'rdma', Number.POSITIVE_INFINITY]);
  expect(holdDown(it, 1)).toBeLessThanOrEqual(12 * SECOND);
  it.onDeadline(it.deadlineNs);
  it.onMoved();
  it.onProbe(false, 0); // Of the last host.
  expect(it.state).toBe('RDMA');
  it.drain();
  it.onMoved();
  expect(it.state).toBe('DRAINED');
});
