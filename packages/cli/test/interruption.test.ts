import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { orInterrupted } from '../../command/src/interruption.js';

it('work that ends, or fails, leaves no listener behind', async () => {
  const { signal } = new AbortController();
  expect(await orInterrupted(Promise.resolve(7), signal)).toBe(7);
  await expect(orInterrupted(Promise.reject(new Error('no')), signal)).rejects.toThrow('no');
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

it('work that goes on is left when Ctrl-C comes', async () => {
  const interrupt = new AbortController();
  const work = orInterrupted(new Promise(() => {}), interrupt.signal);
  interrupt.abort();
  expect(await work).toBeUndefined();
});
