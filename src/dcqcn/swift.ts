/**
 * Swift (Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020,
 * algorithm 1): a window that holds the delay at a target. With the window w in packets, for each acknowledgement of n
 * packets
 *
 *     delay < target:    w = w + ai n / w  (w >= 1),   w + ai n  (w < 1)
 *     else, once per round trip:   w = w max(1 - beta (delay - target) / delay, 1 - max_mdf)
 *
 *     target = base + hops h + max(0, min(a / sqrt(w) + b, fs_range))
 *     a = fs_range / (1/sqrt(fs_min) - 1/sqrt(fs_max)),   b = -a / sqrt(fs_max)
 *
 * A window below one packet is kept by pacing: one packet in RTT / w. Delays are round trips of the RC acknowledgement,
 * which any peer sends. With `splitsDelay` the peer echoes how long it held a packet; then the delay in the fabric and
 * that at the endpoint have a window each, as in the paper, and the smaller one counts. The number of hops is a
 * parameter: a datagram socket does not show how many a packet took.
 */

import { RoceError } from '../core/errors.js';
import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { INT_DATA_TIMES, INT_NONE } from '../packet/int-trailer.js';
import { type Acknowledgement, defineRateControl, RateControl } from './rate-control.js';

const packets = { min: 0.001, max: 1e6 } as const;

/**
 * Defaults: csg-htsim of Broadcom, whose authors call several of them a guess; h and the endpoint target are of its
 * order.
 */
const SWIFT_TABLE = {
  /** Line rate: the ceiling of pacing. */
  linkRateBps: { default: 100e9, ...LIMITS.rateBps },
  minimumRateBps: { default: 10e6, ...LIMITS.rateBps },
  /** Bytes of a packet, the unit of windows: the path MTU. */
  packetBytes: { default: 1024, min: 256, max: 4096 },
  /** base: the target without hops and scaling. */
  baseTargetNs: { default: 20_000, ...LIMITS.timeNs },
  hops: { default: 1, min: 0, max: 64, whole: true },
  /** h: the target grows by it for each hop. */
  hopTargetNs: { default: 3_053, ...LIMITS.timeOrZeroNs },
  /** fs_range: largest increase of the target for a small window. 0: no scaling. */
  scalingRangeNs: { default: 100_000, ...LIMITS.timeOrZeroNs },
  /** fs_min: the window in packets at which the whole range is added. */
  scalingMinimumPackets: { default: 0.1, ...packets },
  /** fs_max: the window in packets from which on nothing is added. */
  scalingMaximumPackets: { default: 100, ...packets },
  /** ai: packets that the window grows by in a round trip. */
  additiveIncreasePackets: { default: 1, ...packets },
  /** beta: the weight of the excess delay in a decrease. */
  decrease: { default: 0.8, ...LIMITS.share },
  /** max_mdf: the largest decrease. */
  maximumDecrease: { default: 0.5, min: 0.001, max: 0.999 },
  initialPackets: { default: 12, ...packets },
  minimumPackets: { default: 0.01, ...packets },
  maximumPackets: { default: 4096, ...packets },
  /** 1: delays in the fabric and at the endpoint have a window each; the peer must echo. */
  splitsDelay: { default: 0, ...LIMITS.flag },
  endpointTargetNs: { default: 20_000, ...LIMITS.timeNs },
} as const satisfies ParameterTable;

type SwiftParameters = ParametersOf<typeof SWIFT_TABLE>;

class DelayWindow {
  readonly #p: SwiftParameters;
  #packets: number;
  #decreasedNs = Number.NEGATIVE_INFINITY;

  constructor(parameters: SwiftParameters) {
    this.#p = parameters;
    this.#packets = this.#bounded(parameters.initialPackets);
  }

  get packets(): number {
    return this.#packets;
  }

  /** An acknowledgement of `acked` packets whose delay was `delayNs`. */
  onDelay(acked: number, delayNs: number, targetNs: number, rttNs: number, now: number): void {
    const { additiveIncreasePackets, decrease, maximumDecrease } = this.#p;
    const window = this.#packets;
    if (delayNs < targetNs) {
      this.#packets = this.#bounded(window + (additiveIncreasePackets * acked) / Math.max(1, window));
    } else if (now - this.#decreasedNs >= rttNs) {
      const factor = Math.max(1 - (decrease * (delayNs - targetNs)) / delayNs, 1 - maximumDecrease);
      this.#packets = this.#bounded(window * factor);
      this.#decreasedNs = now;
    }
  }

  #bounded(window: number): number {
    return Math.min(this.#p.maximumPackets, Math.max(this.#p.minimumPackets, window));
  }
}

export class Swift extends RateControl {
  override readonly usesWindow = true;
  override readonly rttSampleBytes = 1;
  override readonly intKind: number;
  readonly #p: SwiftParameters;
  readonly #fabric: DelayWindow;
  readonly #endpoint: DelayWindow | undefined;
  readonly #slope: number;
  #rttNs: number;

  constructor(parameters: SwiftParameters) {
    super();
    const { scalingMinimumPackets, scalingMaximumPackets, minimumPackets, maximumPackets } = parameters;
    if (scalingMinimumPackets >= scalingMaximumPackets) {
      throw new RoceError('ERR_ROCE_CONFLICT', 'scalingMaximumPackets must be above scalingMinimumPackets');
    }
    if (minimumPackets > maximumPackets)
      throw new RoceError('ERR_ROCE_CONFLICT', 'minimumPackets is above maximumPackets');
    if (parameters.minimumRateBps > parameters.linkRateBps) {
      throw new RoceError('ERR_ROCE_CONFLICT', 'minimumRateBps is above linkRateBps');
    }
    this.#p = parameters;
    this.intKind = parameters.splitsDelay === 1 ? INT_DATA_TIMES : INT_NONE;
    this.#fabric = new DelayWindow(parameters);
    this.#endpoint = parameters.splitsDelay === 1 ? new DelayWindow(parameters) : undefined;
    this.#slope =
      parameters.scalingRangeNs / (1 / Math.sqrt(scalingMinimumPackets) - 1 / Math.sqrt(scalingMaximumPackets));
    this.#rttNs = parameters.baseTargetNs;
  }

  get #packets(): number {
    return this.#endpoint === undefined ? this.#fabric.packets : Math.min(this.#fabric.packets, this.#endpoint.packets);
  }

  override windowBytes(_now: number): number {
    return this.#packets * this.#p.packetBytes;
  }

  override rateBps(_now: number): number {
    const { linkRateBps, minimumRateBps, packetBytes } = this.#p;
    const window = this.#packets;
    if (window >= 1) return linkRateBps;
    return Math.min(linkRateBps, Math.max(minimumRateBps, (window * packetBytes * 8e9) / this.#rttNs));
  }

  targetNs(window: number): number {
    const { baseTargetNs, hops, hopTargetNs, scalingRangeNs, scalingMaximumPackets } = this.#p;
    const scaling = this.#slope * (1 / Math.sqrt(window) - 1 / Math.sqrt(scalingMaximumPackets));
    return baseTargetNs + hops * hopTargetNs + Math.max(0, Math.min(scaling, scalingRangeNs));
  }

  override onAck({ bytes, rttNs, echo }: Readonly<Acknowledgement>, now: number): void {
    if (Number.isNaN(rttNs)) return;
    this.#rttNs = Math.max(1, rttNs);
    const acked = bytes / this.#p.packetBytes;
    const standingNs = this.#endpoint === undefined || echo === undefined ? 0 : Math.min(rttNs, echo.residenceNs);
    this.#fabric.onDelay(acked, rttNs - standingNs, this.targetNs(this.#fabric.packets), rttNs, now);
    this.#endpoint?.onDelay(acked, standingNs, this.#p.endpointTargetNs, rttNs, now);
  }
}

export const swift = defineRateControl({
  name: 'swift',
  summary: 'a window that holds the delay at a target',
  parameters: SWIFT_TABLE,
  create: (parameters) => new Swift(parameters),
});
