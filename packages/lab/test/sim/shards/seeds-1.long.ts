import { describeSeeds } from '../describe-seeds.js';

describeSeeds(1, 250);
