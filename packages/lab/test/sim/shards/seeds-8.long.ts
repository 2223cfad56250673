import { describeSeeds } from '../describe-seeds.js';

describeSeeds(1751, 250);
