import { describeSeeds } from '../describe-seeds.js';

describeSeeds(501, 250);
