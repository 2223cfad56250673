import { describeSeeds } from './describe-seeds.js';

/** A sample for every run of the quick suite; test/sim/shards has the full set. */
describeSeeds(1, 60);
