import { describeFuzz } from '../describe-fuzz.js';

describeFuzz(31, 10);
