/**
 * Go-back-0: the scheme of the first RoCE NICs (Guo et al., "RDMA over Commodity Ethernet at Scale", SIGCOMM 2016,
 * §4.1). A gap at PSN i inside a message that began at PSN s makes the receiver drop the message and expect s again;
 * the sender restarts the whole message. When a message is longer than the distance between losses it never completes:
 * the livelock.
 */

import { GoBackNReceiver, GoBackNSender } from './go-back-n.js';
import { AHEAD_RESTART_MESSAGE, defineRecovery } from './recovery.js';

export class GoBack0Sender extends GoBackNSender {
  override readonly restartsMessages = true;

  override onLoss(_first: number, _end: number, messageStart: number, _next: number, _cause: number): number {
    return messageStart;
  }
}

/** Drops the message in progress when a packet of it is missing. */
export class GoBack0Receiver extends GoBackNReceiver {
  override readonly restartsReads = true;

  override onAhead(_psn: number, _distance: number, _bytes: Uint8Array, _offset: number, _length: number): number {
    return AHEAD_RESTART_MESSAGE;
  }

  override restartsMessage(psn: number, messageStart: number): boolean {
    return psn === messageStart;
  }
}

export const goBack0 = defineRecovery({
  name: 'go-back-0',
  summary: 'retransmits the whole message, as the first RoCE NICs did',
  parameters: {},
  /**
   * Regular, M >= K: 0, for no K packets in a row arrive whole. Random: a message takes f = (1-p)^-M - 1 failed
   * attempts; all attempts take f / p packets up to their end or their first loss, and W more after each loss: M / (f
   * (1/p + W)).
   */
  efficiency: (loss, messagePackets, pipelineDepth) => {
    if (loss.kind === 'regular') return messagePackets >= loss.period ? 0 : undefined;
    const { probability } = loss;
    if (probability === 0) return 1;
    const failed = Math.expm1(-messagePackets * Math.log1p(-probability));
    return messagePackets / (failed * (1 / probability + pipelineDepth));
  },
  sender: () => new GoBack0Sender(),
  receiver: () => new GoBack0Receiver(),
});
