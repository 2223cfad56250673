import { describeFuzz } from '../describe-fuzz.js';

describeFuzz(11, 10);
