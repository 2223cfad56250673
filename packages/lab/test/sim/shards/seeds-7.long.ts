import { describeSeeds } from '../describe-seeds.js';

describeSeeds(1501, 250);
