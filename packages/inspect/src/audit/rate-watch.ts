/**
 * The rate of one direction around CNPs (rule 88), without a verdict: an application that sends little does not show
 * what its NIC does. Packets are taken together in bins of eight; the first 4,096 bins from the first CNP on are kept.
 */

import type { RuleReporter } from './rule-reporter.js';

const BIN_PACKETS = 8;
const BINS_MAX = 4096;
const CNPS_MAX = 4096;
const COMPARED_BINS = 2;
/** Bins after a CNP in which packets may still leave that were already queued. */
const REACTION_BINS = 1;

export interface RateRecord {
  readonly endNs: readonly number[];
  /** How long each bin took, from the last packet of the bin before. */
  readonly spanNs: readonly number[];
  readonly bytes: readonly number[];
  readonly cnpNs: readonly number[];
  /** The highest rate of a bin before the first CNP, in bits per second; 0 without one. */
  readonly rateBefore: number;
}

interface OpenCnp {
  readonly before: number;
  readonly firstBin: number;
}

export class RateWatch {
  readonly #endNs: number[] = [];
  readonly #spanNs: number[] = [];
  readonly #bytes: number[] = [];
  readonly #cnpNs: number[] = [];
  #rateBefore = 0;
  #binStartNs = -1;
  #binBytes = 0;
  #binPackets = 0;
  /** Rates of the last bins, the newest last. */
  #lastRates: number[] = [];
  #bins = 0;
  #open: OpenCnp | undefined;

  take(timeNs: number, bytes: number, reporter: RuleReporter): void {
    if (this.#binStartNs < 0) {
      this.#binStartNs = timeNs;
      return;
    }
    this.#binBytes += bytes;
    if (++this.#binPackets < BIN_PACKETS) return;
    const spanNs = timeNs - this.#binStartNs;
    this.#endBin(timeNs, spanNs, reporter);
    this.#binStartNs = timeNs;
    this.#binBytes = 0;
    this.#binPackets = 0;
  }

  cnp(timeNs: number): void {
    if (this.#cnpNs.length < CNPS_MAX) this.#cnpNs.push(timeNs);
    const rates = this.#lastRates;
    if (this.#open !== undefined || rates.length < COMPARED_BINS) return;
    this.#open = { before: mean(rates), firstBin: this.#bins + REACTION_BINS };
  }

  get record(): RateRecord | undefined {
    if (this.#cnpNs.length === 0) return undefined;
    return {
      endNs: this.#endNs,
      spanNs: this.#spanNs,
      bytes: this.#bytes,
      cnpNs: this.#cnpNs,
      rateBefore: this.#rateBefore,
    };
  }

  #endBin(timeNs: number, spanNs: number, reporter: RuleReporter): void {
    if (spanNs <= 0) return;
    const rateBps = (this.#binBytes * 8e9) / spanNs;
    this.#bins++;
    if (this.#lastRates.length === COMPARED_BINS) this.#lastRates.shift();
    this.#lastRates.push(rateBps);
    if (this.#cnpNs.length === 0) this.#rateBefore = Math.max(this.#rateBefore, rateBps);
    else if (this.#endNs.length < BINS_MAX) {
      this.#endNs.push(timeNs);
      this.#spanNs.push(spanNs);
      this.#bytes.push(this.#binBytes);
    }
    const open = this.#open;
    if (open === undefined || this.#bins < open.firstBin + COMPARED_BINS) return;
    reporter.measure('rate after a CNP', (100 * mean(this.#lastRates)) / open.before);
    this.#open = undefined;
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
