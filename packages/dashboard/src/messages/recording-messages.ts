import type { ScenarioResult } from '@rocev2/lab/internal';

export interface RecordingState {
  readonly kind: 'recording';
  readonly result: ScenarioResult;
}
