import { expect, test } from 'vitest';
import { dieBehindFrame, survive } from './transition.js';

test('streams survive up to 20 deaths of their connections at random moments, 100 times', async () => {
  let resent = 0;
  for (let seed = 1; seed <= 100; seed++) resent += (await survive(seed, 1 + (seed % 20))).resent;
  expect(resent).toBeGreaterThan(1 << 20);
});

test.each([
  ['rdma', 'client'],
  ['rdma', 'server'],
  ['tcp', 'client'],
  ['tcp', 'server'],
] as const)('a connection over %s that dies behind each of the frames of the %s', async (transport, side) => {
  let n = transport === 'tcp' && side === 'client' ? 2 : 1;
  while (await dieBehindFrame(n, transport, side)) n++;
  expect(n).toBeGreaterThan(12);
});
