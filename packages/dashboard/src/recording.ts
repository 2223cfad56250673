/** The dashboard's source for a simulation that has been run. */

import type { ScenarioResult } from '@rocev2/lab/internal';
import type { DashboardSource } from './server.js';

/** A recording does not change, and has nothing to be set. */
export function recordingSource(result: ScenarioResult): DashboardSource {
  return {
    documents: { state: () => ({ kind: 'recording', result }) },
    subscribe: () => () => {},
    apply: undefined,
  };
}
