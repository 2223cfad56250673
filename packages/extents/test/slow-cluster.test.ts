/** A command that the cluster keeps waiting says so once, with the cause, and one that goes on does not. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { sayingIfSlow } from '../src/commands/slow-cluster.js';

describe('a command over extents', () => {
  const notes: string[] = [];
  const output = { note: (text: string) => void notes.push(text) };
  beforeEach(() => {
    notes.length = 0;
    vi.useFakeTimers();
  });
  afterEach(() => void vi.useRealTimers());

  const clusterOf =
    (...states: string[]) =>
    async () =>
      ({ nodes: states.map((state) => ({ state })) }) as never;
  const working = clusterOf('up', 'up', 'up');

  async function notesAfter(progress: readonly number[], status: () => Promise<never> = working): Promise<number> {
    let step = 0;
    let done = (_: number) => {};
    const work = sayingIfSlow(
      new Promise<number>((resolve) => {
        done = resolve;
      }),
      output,
      status,
      () => progress[Math.min(step, progress.length - 1)],
    );
    for (step = 1; step < progress.length; step++) await vi.advanceTimersByTimeAsync(8000);
    done(7);
    expect(await work).toBe(7);
    await vi.advanceTimersByTimeAsync(60_000); // Nothing is said behind its end.
    return notes.length;
  }

  it.each<[string, () => Promise<never>, string]>([
    [
      'nodes are missing',
      clusterOf('up', 'down', 'up', 'read-only'),
      'fewer than three nodes take data, and 2 nodes of 4 do',
    ],
    ['all nodes are up', working, '3 nodes take data, so one of them is slow, or fewer than three have room'],
    ['no manager answers', () => Promise.reject(new Error('no manager answers')), 'no manager that leads answers'],
    ['the manager is silent', () => new Promise(() => {}), 'no manager that leads answers'],
  ])('says once that it waits, and why: %s', async (_name, status, why) => {
    expect(await notesAfter([3, 3, 3, 3], status)).toBe(1);
    expect(notes[0]).toContain(`nothing has been written for 8 s: `);
    expect(notes[0]).toContain(why);
  });

  it('says nothing while it goes on, or has nothing to do', async () => {
    expect(await notesAfter([0, 1, 2, 3])).toBe(0);
    expect(await notesAfter([Number.NaN, Number.NaN, Number.NaN])).toBe(0);
  });
});
