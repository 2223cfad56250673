import { expect, it } from 'vitest';
import { fuzzStrangers, fuzzTcp } from './fuzz.js';

it('a target takes what no host sends', async () => {
  expect((await fuzzTcp(1, 200, 'host')).ended).toBeGreaterThan(0);
});

it('a host takes what no target sends', async () => {
  expect((await fuzzTcp(1, 200, 'target')).ended).toBeGreaterThan(0);
});

it('a target takes bytes without any form', () => fuzzStrangers(1, 2000));
