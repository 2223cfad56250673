/** The NIC opens the memory of a ring that a program offers. */

import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { libC } from '../../../src/dgram-ext/libc.js';
import { Segment } from '../../../src/port/shm/segment.js';
import { openRing } from '../src/shared-ring.js';

const lib = libC();

describe.skipIf(typeof lib === 'string')('an offered ring (needs koffi on Linux)', () => {
  it('is opened; a descriptor that is not open is refused', () => {
    const segment = Segment.create(lib as Exclude<typeof lib, string>, 4096);
    try {
      openRing({ Segment } as never, process.pid, [segment.fd, 4096]).close();
    } finally {
      segment.close();
    }
    expect(() => openRing({ Segment } as never, process.pid, [9999, 4096])).toThrow(
      expect.objectContaining({ code: 'ERR_ROCE_INVALID_ARGUMENT' }),
    );
  });
});
