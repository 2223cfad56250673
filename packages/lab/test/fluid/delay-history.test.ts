import { describe, expect, it } from 'vitest';
import { DelayHistory } from '../../src/fluid/delay-history.js';

const STEP = 0.5;

function counted(samples: number, maxAge: number): DelayHistory {
  const history = new DelayHistory(STEP, maxAge, [0, 100]);
  for (let i = 1; i <= samples; i++) history.push([i, 100 + 2 * i]);
  return history;
}

function valueAt(history: DelayHistory, age: number, channel = 0): number {
  history.seek(age);
  return history.value(channel);
}

describe('DelayHistory', () => {
  it('reads every channel at whole and broken ages', () => {
    const history = counted(20, 5);
    expect(valueAt(history, 0)).toBe(20);
    expect(valueAt(history, STEP)).toBe(19);
    expect(valueAt(history, 2.25 * STEP)).toBe(17.75);
    expect(valueAt(history, 2.25 * STEP, 1)).toBe(135.5);
    expect(valueAt(history, 5)).toBe(10);
  });

  it('was constant before the first sample', () => {
    const history = counted(2, 5);
    expect(valueAt(history, 4)).toBe(0);
    expect(valueAt(history, 4, 1)).toBe(100);
  });

  it('reads its oldest sample beyond its length, and its newest before age zero', () => {
    const history = counted(1000, 5);
    const oldest = valueAt(history, history.maxAgeSeconds);
    expect(oldest).toBe(1000 - history.maxAgeSeconds / STEP);
    expect(valueAt(history, 1e9)).toBe(oldest);
    expect(valueAt(history, -1)).toBe(1000);
  });

  it('refuses a past that would not fit memory', () => {
    expect(() => new DelayHistory(1e-9, 10, [0])).toThrow(/too much memory/);
  });
});
