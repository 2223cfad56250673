/**
 * How near this process is to its limit of open files (`ulimit -n`). At the limit libuv accepts and silently closes TCP
 * connections (its EMFILE trick), so a listener has to check before. Linux only; elsewhere there is no limit here.
 */

import { readdirSync, readFileSync } from 'node:fs';

const RESERVE = 8;
/** A count stays valid for this many connections, because other parts of the program also open files. */
const COUNT_LIFETIME = 64;

/** Counts rarely, because a count reads a directory. */
export class DescriptorLimit {
  /** Read while a descriptor is free for that. */
  readonly max = readSoftLimit();
  #uncounted = 0;

  /**
   * Call it for each accepted connection. Returns how many descriptors must be freed to restore the reserve; mostly 0.
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

/** `max` when no descriptor is left for the listing. */
function openDescriptors(max: number): number {
  try {
    return readdirSync('/proc/self/fd').length - 1; // The listing itself uses one descriptor.
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
