/** Rings in memory that a program has made: their sizes are checked before the NIC uses them. */

import { RoceError } from 'rocev2/internal/core';
import { libC } from 'rocev2/internal/dgram-ext';
import type { SharedMemoryPorts } from 'rocev2/internal/driver';

export type SharedSegment = ReturnType<SharedMemoryPorts['Segment']['create']>;

const HEADER_BYTES = 64;
const DEPTH_MAX = 1 << 20;
const DEPTH_WORD = 3;
const STRIDE_WORD = 4;

/** Descriptor in the program, size, and the smallest possible element in bytes. */
export type OfferedRing = readonly [fd: number, bytes: number, strideMin: number];

/** Opens the ring behind a descriptor of a process. Throws ERR_ROCE_INVALID_ARGUMENT for anything else. */
export function openRing(
  { Segment }: SharedMemoryPorts,
  pid: number,
  [fd, bytes, strideMin]: OfferedRing,
): SharedSegment {
  const lib = libC();
  if (typeof lib === 'string') throw new RoceError('ERR_ROCE_UNSUPPORTED', `no shared memory: ${lib}`);
  const segment = Segment.open(lib, pid, fd, bytes);
  if (segment === undefined) {
    throw new RoceError(
      'ERR_ROCE_INVALID_ARGUMENT',
      `process ${pid} offers no ring`,
      'it must run as the same user, in the same PID namespace',
    );
  }
  if (bytes >= HEADER_BYTES) {
    const header = new Int32Array(segment.memory, 0, HEADER_BYTES / 4);
    const depth = header[DEPTH_WORD];
    const stride = header[STRIDE_WORD];
    const isPowerOfTwo = depth > 0 && depth <= DEPTH_MAX && (depth & (depth - 1)) === 0;
    const fits = stride >= strideMin && stride % 4 === 0 && bytes === HEADER_BYTES + depth * stride;
    if (isPowerOfTwo && fits) return segment;
  }
  segment.close();
  throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `${bytes} bytes of process ${pid} are not a ring`);
}
