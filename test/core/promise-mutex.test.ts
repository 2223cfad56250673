import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { PromiseMutex } from '../../src/core/promise-mutex.js';

describe('a mutex of promises', () => {
  it('runs one piece of work at a time, in the order of the calls, and answers each caller', async () => {
    const mutex = new PromiseMutex();
    const log: string[] = [];
    const work = (name: string) => async () => {
      log.push(`${name} begins`);
      await setImmediate();
      log.push(`${name} ends`);
      return name;
    };
    expect(await Promise.all(['a', 'b', 'c'].map((name) => mutex.run(work(name))))).toEqual(['a', 'b', 'c']);
    expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
  });

  it('begins no work within the call', async () => {
    const mutex = new PromiseMutex();
    let hasBegun = false;
    const done = mutex.run(async () => {
      hasBegun = true;
    });
    expect(hasBegun).toBe(false);
    await done;
    expect(hasBegun).toBe(true);
  });

  it('goes on after a failure, which its caller alone sees', async () => {
    const mutex = new PromiseMutex();
    const failed = mutex.run(async () => {
      throw new Error('broken');
    });
    const next = mutex.run(async () => 7);
    await expect(failed).rejects.toThrow('broken');
    expect(await next).toBe(7);
    await mutex.settled;
  });

  it('is locked until the last piece has settled, and settled then', async () => {
    const mutex = new PromiseMutex();
    expect(mutex.isLocked).toBe(false);
    const ended: number[] = [];
    for (const n of [1, 2]) {
      void mutex.run(async () => {
        await setImmediate();
        ended.push(n);
      });
    }
    expect(mutex.isLocked).toBe(true);
    await mutex.settled;
    expect(ended).toEqual([1, 2]);
    expect(mutex.isLocked).toBe(false);
  });
});
