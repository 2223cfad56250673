import { describeFuzz } from '../describe-fuzz.js';

describeFuzz(1, 10);
