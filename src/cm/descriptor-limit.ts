/**
 * How near this process is to its limit of open files (`ulimit -n`). At the limit libuv accepts and silently closes TCP
 * connections (its EMFILE trick), so a listener has to check before. Linux only; elsewhere there is no limit here.
 */

import { readdirSync, readFileSync } from 'node:fs';

const RESERVE = 8;
/** A count is good for so many connections: other parts of the program open files as well. */
const COUNT_LIFETIME = 64;

/** It counts only as often as it must, because a count reads a directory. */
export class DescriptorLimit {
  /** Read while there is a descriptor to read it with. */
  readonly max = readSoftLimit();
  #uncounted = 0;

  /**
   * To be called for every connection that was accepted: how many descriptors must be freed for the reserve to be
   * whole; mostly 0.
   */
  missing(): number {
    if (this.max === Number.POSITIVE_INFINITY) return 0;
    if (this.#uncounted > 0) {
      this.#uncounted--;
      return 0;
    }
    const spare = this.max - openDescriptors(this.max) - RESERVE;
    // Only half of the rest: other code of the program may use the other half.
    this.#uncounted = Math.min(Math.max(0, spare >> 1), COUNT_LIFETIME);
    return Math.max(0, -spare);
  }
}

/** As many as `max` when there is none left to list them with. */
function openDescriptors(max: number): number {
  try {
    return readdirSync('/proc/self/fd').length - 1; // One descriptor is that of the listing itself.
  } catch {
    return max;
  }
}

function readSoftLimit(): number {
  try {
    const line = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return line === null ? Number.POSITIVE_INFINITY : Number(line[1]);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
