import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ByteQueue } from '../../../src/storage-rpc/nbd/protocol/byte-queue.js';

test('whatever is pushed comes out in order, whichever way it is taken', () => {
  const action = fc.oneof(
    fc.record({ kind: fc.constant('push' as const), bytes: fc.uint8Array({ maxLength: 20 }) }),
    fc.record({
      kind: fc.constantFrom('take' as const, 'peek' as const, 'skip' as const, 'move' as const),
      count: fc.nat(25),
    }),
  );
  fc.assert(
    fc.property(fc.array(action, { maxLength: 40 }), (actions) => {
      const queue = new ByteQueue();
      let model: number[] = [];
      for (const step of actions) {
        if (step.kind === 'push') {
          queue.push(step.bytes);
          model.push(...step.bytes);
          continue;
        }
        const { kind, count } = step;
        const whole = count <= model.length ? model.slice(0, count) : undefined;
        if (kind === 'peek') {
          expect(queue.peek(count)?.length === count ? [...queue.peek(count)!] : undefined).toEqual(whole);
        } else if (kind === 'take') {
          const taken = queue.take(count);
          expect(taken === undefined ? undefined : [...taken]).toEqual(whole);
          if (taken !== undefined) model = model.slice(count);
        } else if (kind === 'skip') {
          expect(queue.skip(count)).toBe(Math.min(count, model.length));
          model = model.slice(count);
        } else {
          const into = new Uint8Array(count + 2).fill(0xee);
          const moved = queue.moveTo(into.subarray(0, count + 1), 1);
          expect([...into]).toEqual([0xee, ...model.slice(0, moved), ...Array(count + 1 - moved).fill(0xee)]);
          expect(moved).toBe(Math.min(count, model.length));
          model = model.slice(moved);
        }
        expect(queue.length).toBe(model.length);
      }
    }),
  );
});

test('what lies in one piece is taken as a view of it', () => {
  const queue = new ByteQueue();
  const piece = Uint8Array.from([1, 2, 3, 4]);
  queue.push(piece);
  const taken = queue.take(2)!;
  expect(taken.buffer).toBe(piece.buffer);
});
