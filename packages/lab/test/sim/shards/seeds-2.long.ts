import { describeSeeds } from '../describe-seeds.js';

describeSeeds(251, 250);
