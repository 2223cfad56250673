import { expect, it } from 'vitest';
import { isArgumentError, RoceError } from '../../src/core/errors.js';
import { WaitEnded } from '../../src/core/wait.js';

/** As another copy of this library makes it. */
const foreign = (code: string) => Object.assign(new Error('text'), { code });

it('errors of another copy of the library are recognised by their code', () => {
  expect(foreign('ERR_ROCE_LIMIT') instanceof RoceError).toBe(true);
  expect(isArgumentError(foreign('ERR_ROCE_OUT_OF_RANGE'))).toBe(true);
  expect(isArgumentError(foreign('ERR_ROCE_LIMIT'))).toBe(false);
});

it.each([
  foreign('ENOENT'),
  foreign('ERR_ROCE_NO_SUCH'),
  new Error('text'),
  { code: 'ERR_ROCE_LIMIT' },
  null,
  undefined,
  'text',
])('negative control: %s is not one', (value) => {
  expect((value as unknown) instanceof RoceError).toBe(false);
});

it('subclasses are recognised by their class alone', () => {
  const error = new WaitEnded('ERR_ROCE_TIMEOUT', 'late', {});
  expect([error instanceof WaitEnded, error instanceof RoceError]).toEqual([true, true]);
  expect(new RoceError('ERR_ROCE_TIMEOUT', 'late') instanceof WaitEnded).toBe(false);
  expect(foreign('ERR_ROCE_TIMEOUT') instanceof WaitEnded).toBe(false);
});
