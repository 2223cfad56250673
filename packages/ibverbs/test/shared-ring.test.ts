/** What a program offers as a ring is refused by a RoceError, whatever its size. */

import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { libC } from '../../../src/dgram-ext/libc.js';
import { Segment } from '../../../src/port/shm/segment.js';
import { openRing } from '../src/shared-ring.js';

const lib = libC();

describe.skipIf(typeof lib === 'string')('an offered ring (needs koffi on Linux)', () => {
  const open = (bytes: number, header: readonly number[] = []) => {
    const segment = Segment.create(lib as Exclude<typeof lib, string>, bytes);
    new Int32Array(segment.memory, 0, header.length).set(header);
    try {
      openRing({ Segment } as never, process.pid, [segment.fd, bytes, 32]).close();
    } finally {
      segment.close();
    }
  };

  it('is opened', () => open(64 + 4 * 32, [0, 0, 0, 4, 32]));

  it.each([
    ['has less than a header', 32, []],
    ['has no elements', 64, []],
    ['has a depth that is not a power of two', 64 + 3 * 32, [0, 0, 0, 3, 32]],
    ['has elements that are too short', 64 + 4 * 16, [0, 0, 0, 4, 16]],
    ['is shorter than its elements', 64 + 3 * 32, [0, 0, 0, 4, 32]],
  ])('that %s is refused', (_, bytes, header) => {
    expect(() => open(bytes, header)).toThrow(expect.objectContaining({ code: 'ERR_ROCE_INVALID_ARGUMENT' }));
  });
});
