/**
 * IRN (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018): selective repeat for networks without
 * pauses, with two additions (§3.1, §3.2).
 *
 * - BDP-FC: at most the packets of a bandwidth-delay product are in flight, a fixed number.
 * - Two timeouts: RTO_low while at most N packets are in flight, when a NACK may never arrive and a retransmission is
 *   cheap; else RTO_high, which is the longest round trip with all buffers on the path full.
 *
 * The receiver reports gaps as selective repeat does. READ responses are covered as well: their requester sees the gap,
 * and requests what is missing. The cap is the paper's for 40 Gb/s and packets of 1 KB. Its timeouts, 100 us and 320
 * us, suit that network, not a pair of processes: by default RTO_high is the local ACK timeout of the queue pair, and
 * RTO_low 5/16 of it, which is the paper's ratio.
 */

import { RoceError } from '../core/errors.js';
import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { SELECTIVE_SPAN } from './packet-accounts.js';
import { defineRecovery } from './recovery.js';
import { SelectiveRepeatReceiver, SelectiveRepeatSender, selectiveRepeat } from './selective-repeat.js';

/** 100 us / 320 us. */
const LOW_SHARE = 5 / 16;

const IRN_TABLE = {
  /** The cap of BDP-FC: packets in flight. */
  inFlightPackets: { default: 110, min: 1, max: SELECTIVE_SPAN, whole: true },
  /** N: packets in flight up to which the low timeout holds. */
  fewPackets: { default: 3, min: 0, max: SELECTIVE_SPAN, whole: true },
  /** RTO_low. 0: 5/16 of RTO_high. */
  lowTimeoutNs: { default: 0, ...LIMITS.timeOrZeroNs },
  /** RTO_high. 0: the local ACK timeout of the queue pair. */
  highTimeoutNs: { default: 0, ...LIMITS.timeOrZeroNs },
} as const satisfies ParameterTable;

export class IrnSender extends SelectiveRepeatSender {
  override readonly inFlightMax: number;
  readonly #p: ParametersOf<typeof IRN_TABLE>;

  /** Throws ERR_ROCE_CONFLICT for a low timeout above the high one. */
  constructor(parameters: ParametersOf<typeof IRN_TABLE>) {
    super();
    const { lowTimeoutNs, highTimeoutNs } = parameters;
    if (highTimeoutNs > 0 && lowTimeoutNs > highTimeoutNs) {
      throw new RoceError('ERR_ROCE_CONFLICT', 'irn: lowTimeoutNs is above highTimeoutNs');
    }
    this.#p = parameters;
    this.inFlightMax = parameters.inFlightPackets;
  }

  override timeoutNs(ackTimeoutNs: number, inFlight: number): number {
    const { fewPackets, lowTimeoutNs, highTimeoutNs } = this.#p;
    const highNs = highTimeoutNs === 0 ? ackTimeoutNs : highTimeoutNs;
    if (inFlight > fewPackets) return highNs;
    return lowTimeoutNs === 0 ? highNs * LOW_SHARE : Math.min(lowTimeoutNs, highNs);
  }
}

export const irn = defineRecovery({
  name: 'irn',
  summary: 'selective repeat with a limit of packets in flight and two timeouts, for networks without PFC',
  parameters: IRN_TABLE,
  usesSack: true,
  efficiency: selectiveRepeat.efficiency!,
  sender: (parameters) => new IrnSender(parameters),
  receiver: () => new SelectiveRepeatReceiver(),
});
