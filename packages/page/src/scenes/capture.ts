/** A capture file of the user: decoded, drawn and audited, without upload. */

import type { CaptureReport } from './capture-report.js';
import type { Explanation, FileScene } from './scene.js';

export const CAPTURE: FileScene = {
  kind: 'file',
  name: 'capture',
  parameters: [],
  accepts: ['.pcap', '.pcapng', '.cap'],
  explain,
};

function explain({ audit, rules, whyNothing }: CaptureReport): Explanation {
  const isBroken = (wanted: string) => rules.filter((one) => one.verdict === 'violation' && one.severity === wanted);
  const [broken, advised] = [isBroken('must'), isBroken('should')];
  const numbers = {
    packets: String(audit.packets.roce),
    connections: String(audit.connections),
    kept: String(rules.filter(({ verdict }) => verdict === 'pass').length),
    open: String(rules.filter(({ cannotTell }) => cannotTell > 0).length),
    broken: String(broken.length),
    rules: broken.map(({ rule }) => rule).join(', '),
    advised: advised.map(({ rule }) => rule).join(', '),
    why: whyNothing ?? '',
  };
  if (whyNothing !== undefined) {
    return { usefulShare: 0.5, title: 'capture.nothing', text: 'capture.nothing.text', numbers };
  }
  if (broken.length > 0) return { usefulShare: 0, title: 'capture.broken', text: 'capture.broken.text', numbers };
  return advised.length > 0
    ? { usefulShare: 0.5, title: 'capture.advised', text: 'capture.advised.text', numbers }
    : { usefulShare: 1, title: 'capture.kept', text: 'capture.kept.text', numbers };
}
