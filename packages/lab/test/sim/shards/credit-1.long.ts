import { isTurn } from '../../../../../test/support/rounds.js';
import { describeCreditSeeds } from '../describe-seeds.js';

const SEEDS = Array.from({ length: 200 }, (_, i) => 1 + i);

/** A round has a fifth of them. */
describeCreditSeeds(SEEDS.filter((_, i) => isTurn(i, SEEDS.length)));
