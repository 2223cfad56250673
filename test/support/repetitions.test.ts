import { expect, it } from 'vitest';
import config from '../../vitest.long.config.js';
import { IS_LONG, repeated, repetitions } from './repetitions.js';

it('the quick suite repeats a proof less often, and takes the first cases', () => {
  expect(repetitions(3, 50, false)).toBe(3);
  expect(repetitions(3, 50, true)).toBe(50);
  expect(repeated(2, ['a', 'b', 'c'], false)).toEqual(['a', 'b']);
  expect(repeated(2, ['a', 'b', 'c'], true)).toEqual(['a', 'b', 'c']);
});

it('the long suite is told that it is one, and has the quick tests that repeat', () => {
  expect(config.test!.env).toEqual({ LONG_SUITE: '1' });
  expect(config.test!.include).toContain('test/storage-rpc/sk/faults.test.ts');
  expect(config.test!.include).not.toContain('test/storage-rpc/sk/messages.test.ts');
  expect(IS_LONG).toBe(process.env['LONG_SUITE'] === '1');
});
