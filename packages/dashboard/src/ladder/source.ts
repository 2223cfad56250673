import { laddersOf, readCapture, readTraceFile } from '@rocev2/inspect/internal/page';
import { isTrace } from 'rocev2/internal/capture';
import type { CaptureState } from '../messages/ladder-messages.js';
import type { DashboardSource } from '../server.js';

export function captureState(name: string, bytes: Uint8Array, udpPort: number): CaptureState {
  const format = isTrace(bytes) ? 'trace' : 'capture';
  const { packets, remarks } =
    format === 'trace' ? readTraceFile(new TextDecoder().decode(bytes)) : readCapture(bytes, udpPort);
  return { kind: 'capture', file: name, format, connections: laddersOf(packets), remarks };
}

export function captureSource(state: CaptureState): DashboardSource {
  return { documents: { state: () => state }, subscribe: () => () => {}, apply: undefined };
}
