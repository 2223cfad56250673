import { expect, test } from 'vitest';
import { fuzzRequestReader, fuzzStorageServer, fuzzSuConnection } from './fuzz.js';

test('20,000 malformed messages: what gets through is whole', () => {
  expect(fuzzRequestReader(20_000, 1)).toBeGreaterThan(200);
});

test('800 malformed messages to a storage server: one connection is lost at most, others do not notice', async () => {
  expect(await fuzzStorageServer(800, 1)).toBeGreaterThan(200);
});

test('malformed messages on 20 sU connections: nothing wrong is delivered', async () => {
  for (let seed = 1; seed <= 20; seed++) expect(await fuzzSuConnection(seed)).toBeGreaterThan(0);
});
