/**
 * How near this process is to its limit of open files (`ulimit -n`). At the limit libuv accepts TCP connections and closes them, and says
 * nothing of it (its EMFILE trick); then nothing else can be opened either. The system hands out the lowest number that is free, so the
 * number of a socket tells how many descriptors are in use.
 */

import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';

/** Descriptors that are left for the rest of the program. */
const RESERVE = 8;

let softLimit: number | undefined;

/** The limit, when this socket has taken one of the last descriptors; undefined: there are enough, or it cannot be known. */
export function descriptorLimitNear(socket: Socket): number | undefined {
  const fd = (socket as { _handle?: { fd?: number } | null })._handle?.fd;
  if (fd === undefined || fd < 0) return undefined; // Windows has no such numbers.
  const limit = descriptorLimit();
  return fd >= limit - RESERVE ? limit : undefined;
}

/** Files that this process may have open; Infinity where that cannot be known. */
export function descriptorLimit(): number {
  softLimit ??= readSoftLimit();
  return softLimit;
}

function readSoftLimit(): number {
  try {
    const line = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return line === null ? Number.POSITIVE_INFINITY : Number(line[1]);
  } catch {
    return Number.POSITIVE_INFINITY; // No Linux, or no descriptor left to read it with.
  }
}
