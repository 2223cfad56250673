/**
 * RCCC, the receiver-credit congestion control of Ultra Ethernet, in the manner of the htsim that the consortium publishes, which is not the standard. A last hop that many senders share is where congestion is hardest to
 * guess and easiest to know: its receiver. So the receiver hands out credit, as fast as its link carries what credit brings, and senders send what they have credit for.
 *
 *     sender      may have   W = G - A   packets on the way: G granted, A arrived, as the newest echo says; before the first, the unsolicited window, 1.5 BDP
 *     receiver    one pacer for all that send to its NIC: 4 packets to each in turn, then a pause of 4 T,   T = bits of a packet on the link / (utilization x link rate)
 *
 * G and A are sums since the connection began, so a lost echo loses no credit. Echoes ride on acknowledgements; where there is nothing to acknowledge, an acknowledgement is sent for the credit alone. Each data
 * packet says how many more its sender wants to send; who wants none gets none, and nobody has more than the unsolicited window on the way. Packets that arrive without credit, as the unsolicited ones do,
 * count as granted when they arrive, and the pacer pauses for them, too. From then on the credit of all senders together is the rate of the link, and what is on the way beyond a round trip, the queue, falls by the share
 * 1 - utilization of it.
 *
 * It deviates in this: credit counts packets of the path MTU, not quanta of 256 bytes; it is not spent but bounds what is on the way, so a packet that was lost takes none with it; and one packet may always be on the way,
 * which asks again for credit that never came.
 *
 * It knows the last hop and nothing else. Where other links are congested, losses and cut packets are all it hears of; UEC combines it with NSCC.
 */

import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { INT_DATA_CREDIT, type IntEcho } from '../packet/int-trailer.js';
import { defineRateControl, RateControl } from './rate-control.js';

const RCCC_TABLE = {
  /** Line rate: packets are paced at it, and as receiver it is what credit is for. */
  linkRateBps: { default: 100e9, ...LIMITS.rateBps },
  /** The longest round trip of the idle network. */
  baseRttNs: { default: 12_000, ...LIMITS.timeNs },
  /** Bytes of a packet, the path MTU. */
  packetBytes: { default: 1024, min: 256, max: 4096 },
  /** The unsolicited window, and the most that is on the way, in bandwidth-delay products. */
  unsolicitedBdps: { default: 1.5, min: 0, max: 100 },
  /** The share of the link that credit is handed out for. Less than 1, so that a queue drains. */
  utilization: { default: 0.98, ...LIMITS.share },
} as const satisfies ParameterTable;

const BITS_NS = 8e9;

/** RCCC of one flow: the window as sender, the rate of the pacer as receiver. Invariant: window <= unsolicited window, a packet at least. */
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

/** The definition for the registry. */
export const rccc = defineRateControl({
  name: 'rccc',
  summary:
    'the receiver hands out credit to all its senders at the rate of its link, as in the htsim of Ultra Ethernet',
  parameters: RCCC_TABLE,
  create: (parameters) => new Rccc(parameters),
});
