/** The scenarios that `rocev2 sim` knows by name. */

import type { ScenarioFile } from '../scenario/schema.js';
import { DCQCN_SCENARIOS } from './dcqcn.js';
import { LIVELOCK_SCENARIOS } from './livelock.js';

export const BUILT_IN_SCENARIOS: readonly ScenarioFile[] = [...LIVELOCK_SCENARIOS, ...DCQCN_SCENARIOS];
