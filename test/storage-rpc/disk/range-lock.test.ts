import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RangeLock } from '../../../src/storage-rpc/disk/range-lock.js';

test('writers have their range to themselves, readers share, and everybody gets his turn', async () => {
  const claim = fc.record({
    begin: fc.nat(20),
    length: fc.integer({ min: 0, max: 8 }),
    exclusive: fc.boolean(),
    turns: fc.nat(4),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(claim, { maxLength: 40 }), async (claims) => {
      const lock = new RangeLock();
      const readers = new Array<number>(32).fill(0);
      const writers = new Array<number>(32).fill(0);
      let ended = 0;
      await Promise.all(
        claims.map(({ begin, length, exclusive, turns }) =>
          lock.run(begin, begin + length, exclusive, async () => {
            const mine = exclusive ? writers : readers;
            for (let i = begin; i < begin + length; i++) {
              mine[i]++;
              expect(writers[i]).toBe(exclusive ? 1 : 0);
              if (exclusive) expect(readers[i]).toBe(0);
            }
            for (let i = 0; i < turns; i++) await Promise.resolve();
            for (let i = begin; i < begin + length; i++) mine[i]--;
            ended++;
          }),
        ),
      );
      expect(ended).toBe(claims.length);
    }),
  );
});

test('a reader does not pass a writer that waits', async () => {
  const lock = new RangeLock();
  const order: string[] = [];
  const claim = (name: string, exclusive: boolean) =>
    lock.run(0, 1, exclusive, async () => {
      order.push(name);
      await Promise.resolve();
    });
  await Promise.all([claim('reader', false), claim('writer', true), claim('late reader', false)]);
  expect(order).toEqual(['reader', 'writer', 'late reader']);
});

test('a failure frees the range and is handed on', async () => {
  const lock = new RangeLock();
  const failing = lock.run(0, 1, true, async () => {
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  expect(await lock.run(0, 1, true, async () => 'yes')).toBe('yes');
});
