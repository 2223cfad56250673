import { expect, test } from 'vitest';
import { casesOfRound, seedOfRound, timesOfRound } from '../support/rounds.js';
import { fuzzRequestReader, fuzzStorageServer, fuzzSuConnection } from './fuzz.js';

const MESSAGES = timesOfRound(1_000_000);
const TO_SERVER = timesOfRound(200_000);
const SEED = seedOfRound(2);
const SU_SEEDS = casesOfRound(Array.from({ length: 2000 }, (_, i) => 1 + i));

test(`${MESSAGES} malformed messages with seed ${SEED}: what gets through is whole`, () => {
  expect(fuzzRequestReader(MESSAGES, SEED)).toBeGreaterThan(10_000);
});

test(`${TO_SERVER} malformed messages with seed ${SEED} to a storage server: one connection is lost at most, others do not notice`, async () => {
  expect(await fuzzStorageServer(TO_SERVER, SEED)).toBeGreaterThan(10_000);
});

test(`malformed messages on ${SU_SEEDS.length} sU connections: nothing wrong is delivered`, async () => {
  for (const seed of SU_SEEDS) expect(await fuzzSuConnection(seed), `seed ${seed}`).toBeGreaterThan(0);
});
