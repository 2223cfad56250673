import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { sweepHere as sweepHereOf } from '../../src/commands/sim/sweep/local-executor.js';
import { overridesOf, sweepPoints } from '../../src/commands/sim/sweep/points.js';
import { sweepTasks } from './sweep-tasks.js';

describe('the points of a sweep', () => {
  it('are all combinations, the last axis varying fastest', () => {
    expect(sweepPoints(['seed=1..2', 'nic.cc=none,dcqcn'])).toEqual([
      { seed: 1, 'nic.cc': 'none' },
      { seed: 1, 'nic.cc': 'dcqcn' },
      { seed: 2, 'nic.cc': 'none' },
      { seed: 2, 'nic.cc': 'dcqcn' },
    ]);
  });

  it('may be objects, with commas inside', () => {
    const cc = ['{"name":"dcqcn","gain":0.5}', '{"name":"fixed","rateBps":"1,2"}', 'none'];
    const points = sweepPoints([`nic.cc=${cc.join(',')}`]);
    expect(points.map((point) => point['nic.cc'])).toEqual([JSON.parse(cc[0]), JSON.parse(cc[1]), 'none']);
    expect(points.map((point) => overridesOf(point))).toEqual(cc.map((text) => [`nic.cc=${text}`]));
  });

  it('have each path once', () => {
    expect(() => sweepPoints(['seed=1..2', 'seed=3..4'])).toThrow('two axes change seed');
  });

  it('cannot be none', () => {
    expect(() => sweepPoints(['seed=4..1'])).toThrow('4..1 is an empty range');
  });
});

const BUILT = '../../../../build/packages/lab/src/commands/sim/sweep/local-executor.js';

// Worker threads run what `npm test` has built.
describe.skipIf(!existsSync(new URL(BUILT, import.meta.url)))('a sweep', async () => {
  const { sweepHere } = (await import(BUILT).catch(() => ({}))) as { sweepHere: typeof sweepHereOf };

  it('that is interrupted has the runs that are done', async () => {
    const interruption = new AbortController();
    const results = await sweepHere(await sweepTasks('duration=1ms', 'duration=100s'), {
      jobs: 1,
      signal: interruption.signal,
      onDone: () => interruption.abort(),
    });
    expect(results.map(({ point }) => point)).toEqual([{ duration: '1ms' }]);
    expect(results[0].result.virtualSeconds).toBe(0.001);
  });

  it('begins no run after it was interrupted', async () => {
    const tasks = await sweepTasks('duration=100s');
    expect(await sweepHere(tasks, { jobs: 1, signal: AbortSignal.abort(), onDone() {} })).toEqual([]);
    const { runInThread } = await import(new URL('run-in-thread.js', new URL(BUILT, import.meta.url)).href);
    expect(await runInThread(tasks[0].document, AbortSignal.abort())).toBeUndefined();
  });

  it('ends with the first run that fails', async () => {
    const tasks = await sweepTasks('duration=100s', 'flows[0].to=h99');
    const { signal } = new AbortController();
    await expect(sweepHere(tasks, { jobs: 2, signal, onDone() {} })).rejects.toThrow("'h99' is not there");
  });
});
