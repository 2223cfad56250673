import { isTurn } from '../../../../../test/support/rounds.js';
import { describeProtectedSeeds } from '../describe-seeds.js';

const SEEDS = Array.from({ length: 1000 }, (_, i) => 1001 + i);

/** A round has a fifth of them. */
describeProtectedSeeds(SEEDS.filter((_, i) => isTurn(i, SEEDS.length)));
