/** A capture file of the user: decoded, drawn and audited, without upload. */

import { overviewOf } from '@rocev2/inspect/internal/page';
import type { CaptureReport } from './capture-report.js';
import type { Explanation, FileScene } from './scene.js';

export const CAPTURE: FileScene = {
  kind: 'file',
  name: 'capture',
  parameters: [],
  accepts: ['.pcap', '.pcapng', '.cap'],
  explain,
};

const SHARES = { nothing: 0.5, broken: 0, advised: 0.5, kept: 1 } as const;

function explain({ audit, whyNothing }: CaptureReport): Explanation {
  const { result, numbers } = overviewOf(audit, whyNothing);
  return { usefulShare: SHARES[result], title: `capture.${result}`, text: `capture.${result}.text`, numbers };
}
