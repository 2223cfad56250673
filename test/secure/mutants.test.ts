/** Changed packets are not taken; the long version has a million of them. */

import { expect, it } from 'vitest';
import { sendMutants } from './mutants.js';

it('of 3,000 changed packets none is taken, each is counted, and the peer is served', async () => {
  const { sent, taken, drops, isServed } = await sendMutants(1, 3000);
  expect({ taken, isServed }).toEqual({ taken: 0, isServed: true });
  expect(Object.values(drops).reduce((sum, n) => sum + n)).toBe(sent);
  expect(Object.keys(drops).sort()).toEqual([
    'secure_drop_forged',
    'secure_drop_malformed',
    'secure_drop_plain',
    'secure_drop_replayed',
    'secure_drop_unknown_spi',
  ]);
});
