/** The dashboard's source for a capture or a trace: a file that does not change. */

import { isTrace } from 'rocev2/internal/capture';
import type { CaptureState } from '../messages/ladder.js';
import type { DashboardSource } from '../server.js';
import { laddersOf } from './ladder.js';
import { readCapture } from './read-capture.js';
import { readTraceFile } from './read-trace.js';

/** What the page shows of a file. Throws ERR_ROCE_IO for a file that is neither, ERR_ROCE_MALFORMED for a damaged trace. */
export function captureState(name: string, bytes: Uint8Array, udpPort: number): CaptureState {
  const format = isTrace(bytes) ? 'trace' : 'capture';
  const { packets, remarks } =
    format === 'trace' ? readTraceFile(new TextDecoder().decode(bytes)) : readCapture(bytes, udpPort);
  return { kind: 'capture', file: name, format, connections: laddersOf(packets), remarks };
}

/** Has nothing to be set. */
export function captureSource(state: CaptureState): DashboardSource {
  return { documents: { state: () => state }, subscribe: () => () => {}, apply: undefined };
}
