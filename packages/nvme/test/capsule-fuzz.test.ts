import { expect, it } from 'vitest';
import { fuzzCapsules, type Mistake } from './capsule-fuzz.js';
import { fuzzAnswers } from './host-fuzz.js';

it('a target answers any command once, or ends the queue', async () => {
  expect((await fuzzCapsules(1, 8000)).ended).toBeGreaterThan(0);
});

it.each<Mistake>(['answers twice', 'does not answer', 'keeps a buffer', 'keeps a capsule'])(
  'a target that %s now and then is found',
  async (mistake) => {
    await expect(fuzzCapsules(1, 8000, mistake)).rejects.toThrow();
  },
);

it('a host takes any answer, and writes nowhere but into the memory of a command', async () => {
  const { ended, succeeded } = await fuzzAnswers(1, 4000);
  expect(ended).toBeGreaterThan(10);
  expect(succeeded).toBeGreaterThan(10);
});
