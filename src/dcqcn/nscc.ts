/**
 * NSCC, the network-signaled congestion control of Ultra Ethernet, as published in the consortium's htsim (not the
 * standard): a window that reads the queueing delay d = RTT - base RTT and the ECN mark of each acknowledgement.
 *
 *     mark   d
 *     no     < target    proportional:    inc += alpha n (target - d);
 *                                      and after a whole window below 1 us:  W += 0.25 a n
 *     no     >= target   fair:            inc += fi n
 *     yes    >= target   multiplicative, once per RTT:    W *= max(1 - gamma (avg - target) / avg, 1/2)
 *     yes    < target    nothing: the packets take another path
 *
 * for n bytes that have arrived. Every RTT or 8 packets W += inc / W, and once per RTT W += eta. With a = BDP / (100
 * Gb/s x 12 us) and b = target / 12 us: alpha = 4 MSS a b / target, fi = 5 MSS a, eta = 0.15 MSS a, gamma = 0.8; avg
 * moves by 0.0125. W lies between a packet and 1.5 BDP, and starts there. Quick adapt, once per RTT + target: if
 * packets were trimmed, or d exceeded 4 targets, and less than an eighth of the largest window has arrived, W is what
 * has arrived, and signals of what is in flight are ignored. A trimmed packet reduces W by its bytes. The target is 1
 * RTT, 0.75 where switches trim. The delay excludes the peer's time, by its echoed time stamp.
 */

import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { INT_DATA_TIMES, type IntEcho } from '../packet/int-trailer.js';
import { defineRateControl, RateControl } from './rate-control.js';

const NSCC_TABLE = {
  /** Line rate: packets are paced at it. */
  linkRateBps: { default: 100e9, ...LIMITS.rateBps },
  /** The longest round trip of the idle network. */
  baseRttNs: { default: 12_000, ...LIMITS.timeNs },
  /** MSS: bytes of a packet, the path MTU. */
  packetBytes: { default: 1024, min: 256, max: 4096 },
  /** The target of the queueing delay in round trips: 0.75 where switches trim. */
  targetRtts: { default: 1, min: 0.01, max: 100 },
  /** gamma: the weight of the excess delay in a decrease. */
  decrease: { default: 0.8, ...LIMITS.share },
} as const satisfies ParameterTable;

const REFERENCE_RATE_BPS = 100e9;
const REFERENCE_RTT_NS = 12_000;
const BITS_NS = 8e9;
/** Below it the path counts as empty. */
const EMPTY_DELAY_NS = 1000;
const AVERAGE_GAIN = 0.0125;
const ADJUST_PACKETS = 8;
const WINDOW_BDPS = 1.5;
const QUICK_TARGETS = 4;
const QUICK_SHARE = 1 / 8;

/** Invariant: packetBytes <= window <= 1.5 BDP. */
export class Nscc extends RateControl {
  override readonly usesEcn = true;
  override readonly usesWindow = true;
  override readonly intKind: number = INT_DATA_TIMES;
  readonly #linkRateBps: number;
  readonly #baseRttNs: number;
  readonly #targetNs: number;
  readonly #gamma: number;
  readonly #mss: number;
  readonly #maximum: number;
  readonly #alpha: number;
  readonly #fi: number;
  readonly #eta: number;
  readonly #fastGain: number;
  #window: number;
  #inc = 0;
  /** Bytes that arrived since the last adjustment, and when that was. */
  #adjustBytes = 0;
  #adjustedNs = Number.NEGATIVE_INFINITY;
  #etaNs = Number.NEGATIVE_INFINITY;
  #averageNs = 0;
  #decreasedNs = Number.NEGATIVE_INFINITY;
  #emptyBytes = 0;
  #achieved = 0;
  #quickEndNs = Number.NEGATIVE_INFINITY;
  #isQuickDue = false;
  #ignoreBytes = 0;

  constructor({ linkRateBps, baseRttNs, packetBytes, targetRtts, decrease }: ParametersOf<typeof NSCC_TABLE>) {
    super();
    const bdp = (linkRateBps * baseRttNs) / BITS_NS;
    const a = bdp / ((REFERENCE_RATE_BPS * REFERENCE_RTT_NS) / BITS_NS);
    this.#linkRateBps = linkRateBps;
    this.#baseRttNs = baseRttNs;
    this.#targetNs = targetRtts * baseRttNs;
    this.#gamma = decrease;
    this.#mss = packetBytes;
    this.#alpha = (4 * packetBytes * a * (this.#targetNs / REFERENCE_RTT_NS)) / this.#targetNs;
    this.#fi = 5 * packetBytes * a;
    this.#eta = 0.15 * packetBytes * a;
    this.#fastGain = 0.25 * a;
    this.#maximum = Math.max(packetBytes, WINDOW_BDPS * bdp);
    this.#window = this.#maximum;
  }

  override rateBps(_now: number): number {
    return this.#linkRateBps;
  }

  override windowBytes(_now: number): number {
    return this.#window;
  }

  get averageDelayNs(): number {
    return this.#averageNs;
  }

  override onEcho(packets: number, rttNs: number, { residenceNs, isMarked }: Readonly<IntEcho>, now: number): void {
    const bytes = packets * this.#mss;
    const delayNs = Math.max(0, rttNs - Math.min(residenceNs, rttNs) - this.#baseRttNs);
    this.#achieved += bytes;
    if (delayNs > QUICK_TARGETS * this.#targetNs) this.#isQuickDue = true;
    if (this.#ignores(bytes)) return;
    this.#average(delayNs);
    if (this.#adaptsQuickly(now)) return;
    const isBelow = delayNs < this.#targetNs;
    if (isMarked) {
      this.#emptyBytes = 0;
      if (!isBelow) this.#decreaseOnce(now);
    } else if (isBelow) this.#increase(bytes, delayNs);
    else this.#inc += this.#fi * bytes;
    this.#adjust(bytes, now);
  }

  override onTrimmed(bytes: number, now: number): void {
    this.#isQuickDue = true;
    if (this.#ignores(bytes)) return;
    this.#average(2 * this.#baseRttNs);
    this.#emptyBytes = 0;
    this.#setWindow(this.#window - bytes);
    this.#adaptsQuickly(now);
  }

  /** After quick adapt: the signal is of a packet that was in flight then. */
  #ignores(bytes: number): boolean {
    if (this.#ignoreBytes <= 0) return false;
    this.#ignoreBytes -= bytes;
    return true;
  }

  #average(delayNs: number): void {
    this.#averageNs += AVERAGE_GAIN * (delayNs - this.#averageNs);
  }

  #increase(bytes: number, delayNs: number): void {
    this.#emptyBytes = delayNs < EMPTY_DELAY_NS ? this.#emptyBytes + bytes : 0;
    if (this.#emptyBytes > this.#window) this.#setWindow(this.#window + this.#fastGain * bytes);
    else this.#inc += this.#alpha * bytes * (this.#targetNs - delayNs);
  }

  #decreaseOnce(now: number): void {
    const average = this.#averageNs;
    if (average <= this.#targetNs || now - this.#decreasedNs < this.#baseRttNs) return;
    this.#decreasedNs = now;
    this.#setWindow(this.#window * Math.max(1 - (this.#gamma * (average - this.#targetNs)) / average, 0.5));
  }

  #adjust(bytes: number, now: number): void {
    this.#adjustBytes += bytes;
    if (this.#adjustBytes < ADJUST_PACKETS * this.#mss && now - this.#adjustedNs < this.#baseRttNs) return;
    let window = this.#window + this.#inc / this.#window;
    this.#inc = 0;
    this.#adjustBytes = 0;
    this.#adjustedNs = now;
    if (now - this.#etaNs >= this.#baseRttNs) {
      window += this.#eta;
      this.#etaNs = now;
    }
    this.#setWindow(window);
  }

  /** True when the window was set to the bytes that arrived in it. */
  #adaptsQuickly(now: number): boolean {
    if (now < this.#quickEndNs) return false;
    const hasBegun = this.#quickEndNs !== Number.NEGATIVE_INFINITY;
    const isShort = this.#achieved < this.#maximum * QUICK_SHARE;
    const adapts = hasBegun && this.#isQuickDue && isShort;
    if (adapts) {
      this.#ignoreBytes = this.#window;
      this.#setWindow(this.#achieved);
      this.#inc = 0;
      this.#isQuickDue = false;
    }
    this.#achieved = 0;
    this.#quickEndNs = now + this.#baseRttNs + this.#targetNs;
    return adapts;
  }

  #setWindow(bytes: number): void {
    this.#window = Math.min(this.#maximum, Math.max(this.#mss, bytes));
  }
}

export const nscc = defineRateControl({
  name: 'nscc',
  summary: 'a window by queueing delay and marks of each acknowledgement, as in the htsim of Ultra Ethernet',
  parameters: NSCC_TABLE,
  create: (parameters) => new Nscc(parameters),
});
