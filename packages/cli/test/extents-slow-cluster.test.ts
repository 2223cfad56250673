/** A command that the cluster keeps waiting says so once, and one that goes on does not. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { sayingIfSlow } from '../../extents/src/commands/slow-cluster.js';

describe('a command over extents', () => {
  const notes: string[] = [];
  const output = { note: (text: string) => void notes.push(text) };
  beforeEach(() => {
    notes.length = 0;
    vi.useFakeTimers();
  });
  afterEach(() => void vi.useRealTimers());

  async function notesAfter(progress: readonly number[]): Promise<number> {
    let step = 0;
    let done = (_: number) => {};
    const work = sayingIfSlow(
      new Promise<number>((resolve) => {
        done = resolve;
      }),
      output,
      () => progress[Math.min(step, progress.length - 1)],
    );
    for (step = 1; step < progress.length; step++) await vi.advanceTimersByTimeAsync(8000);
    done(7);
    expect(await work).toBe(7);
    await vi.advanceTimersByTimeAsync(60_000); // Nothing is said behind its end.
    return notes.length;
  }

  it('says once that it waits', async () => {
    expect(await notesAfter([3, 3, 3, 3])).toBe(1);
    expect(notes[0]).toContain('writes wait while fewer than three nodes take data, or have room');
  });

  it('says nothing while it goes on, or has nothing to do', async () => {
    expect(await notesAfter([0, 1, 2, 3])).toBe(0);
    expect(await notesAfter([Number.NaN, Number.NaN, Number.NaN])).toBe(0);
  });
});
