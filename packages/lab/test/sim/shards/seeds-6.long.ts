import { describeSeeds } from '../describe-seeds.js';

describeSeeds(1251, 250);
