/**
 * Common part of the window controls of HPCC, PINT and PowerTCP: a window W between the one of the minimum rate and the
 * bandwidth-delay product, and packets paced at W/T (Li et al., SIGCOMM 2019, §3.2). One unit of time is T, the base
 * round trip: that of the longest path while it is idle.
 *
 * Updates once per round trip are made at the first acknowledgement of a packet that was sent after the last such
 * update. This is the `ack.seq > lastUpdateSeq` of the papers.
 */

import { RoceError } from '../core/errors.js';
import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { RateControl } from './rate-control.js';

/** Defaults: HPCC's simulator at 100 Gb/s. */
export const WINDOW_RATE_TABLE = {
  /** Line rate: the ceiling, and with T the largest window. A flow starts with both. */
  linkRateBps: { default: 100e9, ...LIMITS.rateBps },
  minimumRateBps: { default: 100e6, ...LIMITS.rateBps },
  /** T: the longest round trip of the idle network. */
  baseRttNs: { default: 12_000, ...LIMITS.timeNs },
} as const satisfies ParameterTable;

const NS_BITS_PER_BYTE = 8e9;

/** Invariant: minimumRateBps <= W/T <= linkRateBps. */
export abstract class WindowRateControl extends RateControl {
  override readonly usesWindow: boolean = true;
  protected readonly baseRttNs: number;
  readonly #minimumBytes: number;
  readonly #maximumBytes: number;
  #bytes: number;
  #roundTripBeganNs = Number.NEGATIVE_INFINITY;

  constructor({ linkRateBps, minimumRateBps, baseRttNs }: ParametersOf<typeof WINDOW_RATE_TABLE>) {
    super();
    if (minimumRateBps > linkRateBps) {
      throw new RoceError('ERR_ROCE_CONFLICT', 'minimumRateBps is above linkRateBps');
    }
    this.baseRttNs = baseRttNs;
    this.#minimumBytes = this.bytesOf(minimumRateBps);
    this.#maximumBytes = this.bytesOf(linkRateBps);
    this.#bytes = this.#maximumBytes;
  }

  override rateBps(_now: number): number {
    return (this.#bytes * NS_BITS_PER_BYTE) / this.baseRttNs;
  }

  override windowBytes(_now: number): number {
    return this.#bytes;
  }

  protected bytesOf(rateBps: number): number {
    return (rateBps * this.baseRttNs) / NS_BITS_PER_BYTE;
  }

  protected get window(): number {
    return this.#bytes;
  }

  protected set window(bytes: number) {
    this.#bytes = Math.min(this.#maximumBytes, Math.max(this.#minimumBytes, bytes));
  }

  /** True, and a new round trip begins, when the acknowledged packet was sent in this one. */
  protected isNewRoundTrip(rttNs: number, now: number): boolean {
    if (now - rttNs < this.#roundTripBeganNs) return false;
    this.#roundTripBeganNs = now;
    return true;
  }
}
