import { isTurn } from '../../../../../test/support/rounds.js';
import { describePlacementSeeds } from '../describe-seeds.js';

const SEEDS = Array.from({ length: 200 }, (_, i) => 1 + i);

/** A round has a fifth of them. */
describePlacementSeeds(SEEDS.filter((_, i) => isTurn(i, SEEDS.length)));
