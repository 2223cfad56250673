import { expect, it } from 'vitest';
import { withDefaults } from '../../src/core/defaults.js';

it('an option that is undefined has its default, as one that is absent', () => {
  const defaults = { depth: 4, name: 'a' };
  expect(withDefaults(defaults, { depth: undefined, more: 1 })).toEqual({ depth: 4, name: 'a', more: 1 });
  expect(withDefaults(defaults, { depth: 0 })).toEqual({ depth: 0, name: 'a' });
  expect(defaults).toEqual({ depth: 4, name: 'a' });
});
