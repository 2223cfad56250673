/**
 * Go-back-N: the rule of the InfiniBand transport (IBTA vol. 1 §9.7.5) and the only scheme of standard peers. The
 * receiver drops everything after a gap and names the missing PSN; the sender resumes there.
 */

import { AHEAD_NAK, defineRecovery, ReceiverRecovery, SenderRecovery } from './recovery.js';

/** Resumes at the first missing packet. */
export class GoBackNSender extends SenderRecovery {
  override readonly goesBack = true;

  override onLoss(first: number, _end: number, _messageStart: number, _next: number, _cause: number): number {
    return first;
  }
}

/** Drops packets after a gap and reports the gap once. */
export class GoBackNReceiver extends ReceiverRecovery {
  override onAhead(_psn: number, _distance: number, _bytes: Uint8Array, _offset: number, _length: number): number {
    return AHEAD_NAK;
  }
}

export const goBackN = defineRecovery({
  name: 'go-back-n',
  summary: 'retransmits everything from the first lost packet on, as the standard requires',
  parameters: {},
  /** Regular: of every k K packets sent, k = ceil((W+1) / K), the last W+1 are wasted. Random: (1-p) / (1 + p W). */
  efficiency: (loss, _messagePackets, pipelineDepth) => {
    if (loss.kind === 'random') return (1 - loss.probability) / (1 + loss.probability * pipelineDepth);
    const wasted = pipelineDepth + 1;
    return 1 - wasted / (Math.ceil(wasted / loss.period) * loss.period);
  },
  sender: () => new GoBackNSender(),
  receiver: () => new GoBackNReceiver(),
});
