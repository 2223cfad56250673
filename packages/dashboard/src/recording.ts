import type { ScenarioResult } from '@rocev2/lab/internal';
import type { DashboardSource } from './server.js';

export function recordingSource(result: ScenarioResult): DashboardSource {
  return {
    documents: { state: () => ({ kind: 'recording', result }) },
    subscribe: () => () => {},
    apply: undefined,
  };
}
