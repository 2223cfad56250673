import { expect, it } from 'vitest';
import { fuzzCapsules } from './capsule-fuzz.js';

it('a target answers any command once, or ends the queue', async () => {
  expect((await fuzzCapsules(1, 8000)).ended).toBeGreaterThan(0);
});
