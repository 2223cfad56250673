/** Rings in memory that a program has made. What the NIC makes of one checks its layout. */

import { RoceError } from 'rocev2/internal/core';
import { libC } from 'rocev2/internal/dgram-ext';
import type { SharedMemoryPorts } from 'rocev2/internal/driver';

export type SharedSegment = ReturnType<SharedMemoryPorts['Segment']['create']>;

/** Descriptor in the program, and size. */
export type OfferedRing = readonly [fd: number, bytes: number];

/** Opens the memory behind a descriptor of a process. Throws ERR_ROCE_INVALID_ARGUMENT if it cannot be shared. */
export function openRing({ Segment }: SharedMemoryPorts, pid: number, [fd, bytes]: OfferedRing): SharedSegment {
  const lib = libC();
  if (typeof lib === 'string') throw new RoceError('ERR_ROCE_UNSUPPORTED', `no shared memory: ${lib}`);
  const segment = Segment.open(lib, pid, fd, bytes);
  if (segment !== undefined) return segment;
  throw new RoceError(
    'ERR_ROCE_INVALID_ARGUMENT',
    `process ${pid} offers no ring`,
    'it must run as the same user, in the same PID namespace',
  );
}
