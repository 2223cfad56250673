/**
 * How near this process is to its limit of open files (`ulimit -n`). At the limit libuv accepts TCP connections and closes them, and says
 * nothing of it (its EMFILE trick); then nothing else can be opened either. So a listener has to know before. Linux lists what is open;
 * where that list does not exist nothing is known, and there is no limit here.
 */

import { readdirSync, readFileSync } from 'node:fs';

/** Descriptors that are left for the rest of the program. */
const RESERVE = 8;
/** A count is good for so many connections: other parts of the program open files as well. */
const COUNT_LIFETIME = 64;

/** What one listener knows of the descriptors of its process. It counts only as often as it must, because a count reads a directory. */
export class DescriptorLimit {
  /** Files that this process may have open; Infinity where that cannot be known. Read while there is a descriptor to read it with. */
  readonly max = readSoftLimit();
  /** Connections that may come before the next count. */
  #uncounted = 0;

  /** To be called for every connection that was accepted: how many descriptors must be freed for the reserve to be whole; mostly 0. */
  missing(): number {
    if (this.max === Number.POSITIVE_INFINITY) return 0;
    if (this.#uncounted > 0) {
      this.#uncounted--;
      return 0;
    }
    const spare = this.max - openDescriptors(this.max) - RESERVE;
    // Half of them: the rest of the program may take the other half meanwhile.
    this.#uncounted = Math.min(Math.max(0, spare >> 1), COUNT_LIFETIME);
    return Math.max(0, -spare);
  }
}

/** As many as `max` when there is none left to list them with. */
function openDescriptors(max: number): number {
  try {
    return readdirSync('/proc/self/fd').length - 1; // One of them is that of the list.
  } catch {
    return max;
  }
}

function readSoftLimit(): number {
  try {
    const line = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return line === null ? Number.POSITIVE_INFINITY : Number(line[1]);
  } catch {
    return Number.POSITIVE_INFINITY; // No Linux.
  }
}
