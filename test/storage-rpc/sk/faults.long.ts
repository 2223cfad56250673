import { test } from 'vitest';
import { checkBadData } from './bad-data.js';

test('10,000 operations whose data is changed behind the ICRC: every one is caught', () => checkBadData(5000));
