import { expect, test } from 'vitest';
import { fuzzRequestReader, fuzzStorageServer, fuzzSuConnection } from './fuzz.js';

test('1,000,000 malformed messages: what gets through is whole', () => {
  expect(fuzzRequestReader(1_000_000, 2)).toBeGreaterThan(10_000);
});

test('200,000 malformed messages to a storage server: one connection is lost at most, others do not notice', async () => {
  expect(await fuzzStorageServer(200_000, 2)).toBeGreaterThan(10_000);
});

test('malformed messages on 2,000 sU connections: nothing wrong is delivered', async () => {
  for (let seed = 1; seed <= 2000; seed++) expect(await fuzzSuConnection(seed)).toBeGreaterThan(0);
});
