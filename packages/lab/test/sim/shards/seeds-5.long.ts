import { describeSeeds } from '../describe-seeds.js';

describeSeeds(1001, 250);
