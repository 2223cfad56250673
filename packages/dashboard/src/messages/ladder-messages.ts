import type { LadderConnection } from '@rocev2/command/plot';

export interface CaptureState {
  readonly kind: 'capture';
  readonly file: string;
  readonly format: 'capture' | 'trace';
  readonly connections: readonly LadderConnection[];
  readonly remarks: readonly string[];
}
