/**
 * The generic cell rate algorithm (ITU-T I.371), once for requests and once for bytes. Each keeps the time at which
 * everything granted would be done at the rate; a request may go when that is less than the burst ahead.
 */

import { checkOptions, type OptionNames } from '../../core/arguments.js';
import { RoceError } from '../../core/errors.js';
import { NS_PER_S } from '../../core/units.js';

/** Limits of a disk. Absent: unlimited. */
export interface DiskLimit {
  /** Requests per second, of all clients together; above 0. */
  readonly iops?: number | undefined;
  /** Bytes per second, read and written, of all clients together; above 0. */
  readonly bytesPerSecond?: number | undefined;
}

const LIMIT_NAMES: OptionNames<DiskLimit> = { iops: true, bytesPerSecond: true };

export function checkDiskLimit(limit: DiskLimit): void {
  checkOptions('limit', limit, LIMIT_NAMES);
  for (const [name, value] of Object.entries(limit)) {
    if (value > 0) continue;
    throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `${name} is ${value}`, 'it must be above 0');
  }
}

/** What may go at once after a pause: a twentieth of a second's worth. Timers are a millisecond coarse. */
const BURST_NS = 50e6;

export class RateLimit {
  readonly #nsPerRequest: number;
  readonly #nsPerByte: number;
  #requestsNs = Number.NEGATIVE_INFINITY;
  #bytesNs = Number.NEGATIVE_INFINITY;

  constructor({ iops = Number.POSITIVE_INFINITY, bytesPerSecond = Number.POSITIVE_INFINITY }: DiskLimit) {
    this.#nsPerRequest = NS_PER_S / iops;
    this.#nsPerByte = NS_PER_S / bytesPerSecond;
  }

  /** When the next request of any length may start: a long one delays later requests. */
  get readyNs(): number {
    return Math.max(this.#requestsNs, this.#bytesNs) - BURST_NS;
  }

  take(bytes: number, nowNs: number): void {
    this.#requestsNs = Math.max(this.#requestsNs, nowNs) + this.#nsPerRequest;
    this.#bytesNs = Math.max(this.#bytesNs, nowNs) + bytes * this.#nsPerByte;
  }
}
