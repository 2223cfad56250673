import { describeSeeds } from '../describe-seeds.js';

describeSeeds(751, 250);
