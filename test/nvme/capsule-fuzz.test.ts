import { expect, it } from 'vitest';
import { fuzzCapsules } from './capsule-fuzz.js';
import { fuzzAnswers } from './host-fuzz.js';

it('a target answers any command once, or ends the queue', async () => {
  expect((await fuzzCapsules(1, 8000)).ended).toBeGreaterThan(0);
});

it('a host takes any answer, and writes nowhere but into the memory of a command', async () => {
  const { ended, succeeded } = await fuzzAnswers(1, 4000);
  expect(ended).toBeGreaterThan(10);
  expect(succeeded).toBeGreaterThan(10);
});
