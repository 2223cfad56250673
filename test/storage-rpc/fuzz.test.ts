import { expect, test } from 'vitest';
import { fuzzRequestReader, fuzzStorageServer, fuzzSuConnection } from './fuzz.js';

test('100,000 malformed messages: what gets through is whole', () => {
  expect(fuzzRequestReader(100_000, 1)).toBeGreaterThan(1000);
});

test('4,000 malformed messages to a storage server: one connection is lost at most, others do not notice', async () => {
  expect(await fuzzStorageServer(4_000, 1)).toBeGreaterThan(1000);
}, 120_000); // Seven seconds of a core that others may want, too.

test('malformed messages on 100 sU connections: nothing wrong is delivered', async () => {
  for (let seed = 1; seed <= 100; seed++) expect(await fuzzSuConnection(seed)).toBeGreaterThan(0);
});
