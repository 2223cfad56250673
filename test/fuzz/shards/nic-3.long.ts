import { describeFuzz } from '../describe-fuzz.js';

describeFuzz(21, 10);
