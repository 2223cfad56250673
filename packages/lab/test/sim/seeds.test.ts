import { describeCreditSeeds, describePlacementSeeds, describeSeeds } from './describe-seeds.js';

/** A sample for every run of the quick suite; test/sim/shards has the full set. */
describeSeeds(1, 8);
/** READ requests that are lost while the receiver keeps nothing behind them. */
describeSeeds(73, 1);
describeSeeds(129, 1);
/** Damage to trailers, and a few others. */
describeCreditSeeds([1, 10, 15, 19, 20]);
/** Each recovery scheme. */
describePlacementSeeds([1, 2, 3, 5, 6, 7, 9, 10]);
