import type { ScenarioFile } from '../scenario/schema.js';
import { AZURE_SCENARIOS } from './azure.js';
import { CHUNK_SCENARIOS } from './chunks.js';
import { COMPLETION_SCENARIOS } from './completion-times.js';
import { DCQCN_SCENARIOS } from './dcqcn.js';
import { INCIDENT_SCENARIOS } from './incidents.js';
import { LIVELOCK_SCENARIOS } from './livelock.js';
import { RECOVERY_SCENARIOS } from './recovery.js';
import { TIMELY_SCENARIOS } from './timely.js';

/** All of them, in the order of `rocev2 sim list`. */
export const BUILT_IN_SCENARIOS: readonly ScenarioFile[] = [
  ...LIVELOCK_SCENARIOS,
  ...DCQCN_SCENARIOS,
  ...TIMELY_SCENARIOS,
  ...COMPLETION_SCENARIOS,
  ...RECOVERY_SCENARIOS,
  ...AZURE_SCENARIOS,
  ...CHUNK_SCENARIOS,
  ...INCIDENT_SCENARIOS,
];
