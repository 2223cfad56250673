/**
 * Recovery by trimmed packets, in the manner of DCP (Li et al., "Revisiting RDMA Reliability for Lossy Fabrics",
 * SIGCOMM 2025). Losses are not inferred: a packet is lost when its header returns, and only that packet is
 * retransmitted.
 *
 * - A switch trims a packet whose queue is full to its header, and forwards that in a control queue, which must be
 *   lossless ("switch": {"trim": {}}). The receiver returns the header, and the sender queues the packet for
 *   retransmission. A trimmed READ response arrives at the requester, which requests that part again.
 * - The receiver does not report gaps: no NAK, no bitmap, no inference from order or time. Acknowledgements are
 *   cumulative. So packets may take all entropies in turn, and a late packet is never retransmitted.
 * - Only the loss of a header is recovered by the timeout of the queue pair: then all unacknowledged packets are
 *   retransmitted. The timeout is coarse, because no loss that a switch reports needs it.
 *
 * So with trim probability p the sender sends 1 / (1 - p) packets for each delivered one. No header is lost if the
 * share of the control queue is large enough. With N senders at line rate into one port, data packets r times as long
 * as headers on the link, and control and data served in the ratio w to 1, the port serves 1 / (1 + w) of a link of
 * data, trims the rest of N, and
 *
 *     (N - 1 / (1 + w)) / r <= w / (1 + w),   that is   w >= (N - 1) / (r - N)   for N < r,
 *
 * keeps the control queue short. Strict priority, the default of the switch, is w without bound.
 *
 * One deviation: in DCP every packet has an address and the number of its message; the receiver writes it to that
 * address, and counts the packets of each message. Here packets ahead of a gap are buffered in the store of selective
 * repeat and executed in order, so a message is complete when its last packet is.
 */

import type { ParametersOf, ParameterTable } from '../core/parameters.js';
import { ENTROPIES_MAX } from '../packet/int-trailer.js';
import { psnAdd } from '../packet/psn.js';
import { type EntropyChoice, RoundRobinEntropies, SingleEntropy } from './entropy-choice.js';
import { CHOICE_ECMP, CHOICE_SPRAY } from './multipath.js';
import {
  PACKET_DELIVERED,
  PACKET_OUTSTANDING,
  PACKET_RESENT,
  PacketAccounts,
  SELECTIVE_SPAN,
  SPAN_MASK,
} from './packet-accounts.js';
import { defineRecovery, LOSS_REPORTED, NO_REWIND } from './recovery.js';
import { SelectiveRepeatReceiver } from './selective-repeat.js';

const DCP_TABLE = {
  /** At least two: switches trim packets of connections that announce several. */
  paths: { default: 64, min: 2, max: ENTROPIES_MAX, whole: true, agreed: true },
  /** 0: all packets take the first, as with ECMP; 1: all in turn. */
  choice: { default: CHOICE_SPRAY, min: CHOICE_ECMP, max: CHOICE_SPRAY, whole: true },
} as const satisfies ParameterTable;

type DcpParameters = ParametersOf<typeof DCP_TABLE>;

/** Retransmits packets reported as trimmed; after a timeout, everything unacknowledged. */
export class DcpSender extends PacketAccounts {
  override readonly infersLosses = false;
  readonly #parameters: DcpParameters;
  #choice: EntropyChoice;

  constructor(parameters: DcpParameters) {
    super();
    this.#parameters = parameters;
    this.#choice = entropyChoice(parameters);
  }

  override reset(psn: number): void {
    super.reset(psn);
    this.#choice = entropyChoice(this.#parameters);
  }

  override nextEntropy(now: number): number {
    return this.#choice.next(now);
  }

  override onTrimmed(psn: number): boolean {
    const state = this.state[psn & SPAN_MASK];
    if (state !== PACKET_OUTSTANDING && state !== PACKET_RESENT) return false;
    this.markLost(psn);
    return true;
  }

  override onLoss(first: number, end: number, _messageStart: number, _next: number, cause: number): number {
    if (cause === LOSS_REPORTED) return NO_REWIND; // PSN order, which has no meaning here.
    for (let psn = first; psn !== end; psn = psnAdd(psn, 1)) {
      if (this.state[psn & SPAN_MASK] !== PACKET_DELIVERED) this.markLost(psn);
    }
    return NO_REWIND;
  }
}

function entropyChoice({ choice, paths }: DcpParameters): EntropyChoice {
  return choice === CHOICE_SPRAY ? new RoundRobinEntropies(paths) : new SingleEntropy();
}

export class DcpReceiver extends SelectiveRepeatReceiver {
  override readonly reportsGaps = false;
  /** Each trimmed answer may be requested separately, and a dropped request waits for the timeout. */
  override readonly replaysMax = SELECTIVE_SPAN;

  override bitmapBytes(_expected: number): number {
    return 0;
  }
}

export const dcp = defineRecovery({
  name: 'dcp',
  summary: 'retransmits only packets that a switch trimmed; a timeout if a header is lost',
  parameters: DCP_TABLE,
  entropies: ({ paths }) => paths,
  sender: (parameters) => new DcpSender(parameters),
  receiver: () => new DcpReceiver(),
});
