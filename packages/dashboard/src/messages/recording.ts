/** What the dashboard's server tells its page about a simulation that has been run. */

import type { ScenarioResult } from '@rocev2/lab/internal';

/** `GET state`. */
export interface RecordingState {
  /** Tells what the page is over. */
  readonly kind: 'recording';
  /** The document of `rocev2 sim run --json`. */
  readonly result: ScenarioResult;
}
