/**
 * RCCC, the receiver-credit congestion control of Ultra Ethernet, as in the consortium's htsim (not the standard): the
 * receiver of a shared last hop grants credit at its link rate.
 *
 *     sender      may have   W = G - A   packets in flight: G granted, A arrived, by the newest echo;
 *                 before the first echo, the unsolicited window, 1.5 BDP
 *     receiver    one pacer for all that send to its NIC: 4 packets to each in turn, then a pause of 4 T,
 *                 T = bits of a packet on the link / (utilization x link rate)
 *
 * G and A are cumulative, so a lost echo loses no credit. Echoes ride on acknowledgements; without data to acknowledge,
 * an acknowledgement is sent for the credit alone. Each data packet announces its sender's demand; nobody has more than
 * the unsolicited window in flight. Packets without credit count as granted on arrival, and the pacer pauses for them.
 * The standing queue then falls by the share 1 - utilization.
 *
 * Deviations: credit counts packets of the path MTU, not quanta of 256 bytes; it bounds what is in flight rather than
 * being spent, so a lost packet loses none; and one packet may always be in flight, which requests lost credit again.
 * Only the last hop is controlled; UEC combines this with NSCC.
 */

import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { INT_DATA_CREDIT, type IntEcho } from '../packet/int-trailer.js';
import { defineRateControl, RateControl } from './rate-control.js';

const RCCC_TABLE = {
  /** Line rate: packets are paced at it, and as receiver credit is granted for it. */
  linkRateBps: { default: 100e9, ...LIMITS.rateBps },
  /** The longest round trip of the idle network. */
  baseRttNs: { default: 12_000, ...LIMITS.timeNs },
  packetBytes: { default: 1024, min: 256, max: 4096 },
  /** The unsolicited window, and the most that is in flight, in bandwidth-delay products. */
  unsolicitedBdps: { default: 1.5, min: 0, max: 100 },
  /** The share of the link for which credit is granted. Less than 1, so that a queue drains. */
  utilization: { default: 0.98, ...LIMITS.share },
} as const satisfies ParameterTable;

const BITS_NS = 8e9;

/** Invariant: a packet <= window <= unsolicited window. */
export class Rccc extends RateControl {
  override readonly usesWindow = true;
  override readonly intKind: number = INT_DATA_CREDIT;
  override readonly creditRateBps: number;
  override readonly creditLeadNs: number;
  override readonly creditMaximumBytes: number;
  readonly #linkRateBps: number;
  readonly #packetBytes: number;
  #window: number;

  constructor(parameters: ParametersOf<typeof RCCC_TABLE>) {
    super();
    const { linkRateBps, baseRttNs, packetBytes, unsolicitedBdps, utilization } = parameters;
    this.creditRateBps = utilization * linkRateBps;
    this.creditLeadNs = baseRttNs;
    this.#linkRateBps = linkRateBps;
    this.#packetBytes = packetBytes;
    this.creditMaximumBytes = Math.max(packetBytes, (unsolicitedBdps * linkRateBps * baseRttNs) / BITS_NS);
    this.#window = this.creditMaximumBytes;
  }

  override rateBps(_now: number): number {
    return this.#linkRateBps;
  }

  override windowBytes(_now: number): number {
    return this.#window;
  }

  override onEcho(_packets: number, _rttNs: number, { granted, received }: Readonly<IntEcho>, _now: number): void {
    const credit = (granted - received) | 0; // Both wrap.
    this.#window = Math.min(this.creditMaximumBytes, Math.max(1, credit) * this.#packetBytes);
  }
}

export const rccc = defineRateControl({
  name: 'rccc',
  summary: 'the receiver grants credit to all its senders at the rate of its link, as in the htsim of Ultra Ethernet',
  parameters: RCCC_TABLE,
  create: (parameters) => new Rccc(parameters),
});
