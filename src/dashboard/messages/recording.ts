/** What the dashboard's server tells its page about a simulation that has been run. */

import type { ScenarioResult } from '../../sim/scenario/result.js';

/** `GET state`. */
export interface RecordingState {
  readonly kind: 'recording';
  readonly result: ScenarioResult;
}
