/** Data that leave by a ring past the cache: the packets are those of an ordinary copy. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { crc32 } from '../../src/core/crc32.js';
import { type LibC, libC } from '../../src/dgram-ext/libc.js';
import { IpAddress } from '../../src/packet/address.js';
import { checkIcrc, ICRC_OK, IcrcFlow, sealIcrcAround } from '../../src/packet/icrc.js';
import type { RxDatagram } from '../../src/port/datagram.js';
import type { Copying } from '../../src/port/shm/ring-batch.js';
import { RING_BYTES, RING_SLOTS, RingReader, RingWriter } from '../../src/port/shm/shared-ring.js';
import { copiesRight, loadStreamingCopy, type StreamingCopy } from '../../src/port/shm/streaming-copy.js';

const A = IpAddress.parse('127.0.0.1');
const ENDS = { writer: A, writerPort: 4791, reader: A, readerPort: 5000 };
const HEADER_BYTES = 28;
const DATA_BYTES = 4096;
const flow = new IcrcFlow(A, A, 4791, 4791);

/** What a library does that stores past the cache, without one: what is not drained is not in memory. */
function delayedCopy(): StreamingCopy {
  const late: Array<() => void> = [];
  return {
    copy: (to, at, from, offset, length) => {
      const bytes = from.slice(offset, offset + length);
      late.push(() => to.set(bytes, at));
    },
    drain: () => {
      for (const store of late.splice(0)) store();
    },
  };
}

/** Past the cache, whatever it costs. */
const always = (streaming: StreamingCopy): Copying => ({
  streaming,
  choice: { isPast: true, begins: () => {}, ends: () => {} },
});

/** Sends `packets` through a ring, more than it holds, and returns what the reader finds wrong. */
function sendThrough(streaming: StreamingCopy, packets: number): string[] {
  const memory = new ArrayBuffer(RING_BYTES);
  const writer = new RingWriter(memory, 1, ENDS, always(streaming));
  const reader = RingReader.open(memory, 1, 2, ENDS)!;
  const source = Uint8Array.from({ length: packets + DATA_BYTES }, (_, i) => (i * i) >>> 5);
  const rest = { sourcePort: 0, destinationPort: 0, ecn: 0, dscp: 0, ipId: 0 };
  const rx: RxDatagram = { bytes: new Uint8Array(0), offset: 0, length: 0, source: A, destination: A, ...rest };
  const wrong: string[] = [];
  let received = 0;
  const onDatagram = ({ bytes, offset, length }: RxDatagram) => {
    if (checkIcrc(flow, bytes, offset, length, 0) !== ICRC_OK) wrong.push(`ICRC of ${received}`);
    const data = bytes.subarray(offset + HEADER_BYTES, offset + HEADER_BYTES + DATA_BYTES);
    if (crc32(data) !== crc32(source.subarray(received, received + DATA_BYTES))) wrong.push(`data of ${received}`);
    received++;
  };
  for (let sent = 0; sent < packets; ) {
    const batch = writer.reserve(Math.min(60, packets - sent))!;
    for (; batch.count < batch.capacity; batch.count++, sent++) {
      const slot = batch.count;
      const start = batch.payloadOffset(slot);
      batch.slab.fill(sent, start, start + HEADER_BYTES);
      batch.slab[start + 4] = 0;
      batch.borrow(HEADER_BYTES, source, sent, DATA_BYTES);
      batch.lengths[slot] = HEADER_BYTES + DATA_BYTES + 4;
      sealIcrcAround(flow, batch.slab, start, HEADER_BYTES, batch.lastWordOffset(slot), 0, source, sent, DATA_BYTES);
    }
    for (let slot = 0; slot < batch.count; slot++) writer.keep(batch.lengths[slot], 0, 0);
    writer.publish();
    reader.receive(rx, RING_SLOTS, onDatagram);
  }
  if (received !== packets) wrong.push(`${received} of ${packets} packets`);
  return wrong;
}

describe('a ring that is written past the cache', () => {
  it('shows its reader whole packets with right ICRCs, round after round', () => {
    expect(sendThrough(delayedCopy(), 3 * RING_SLOTS)).toEqual([]);
  });

  it('drains before it shows: a copy that is never drained would show what stood there before', () => {
    const { copy } = delayedCopy();
    expect(sendThrough({ copy, drain: () => {} }, 10)).toContain('data of 9');
  });

  it('lends out nothing without a way to copy past the cache', () => {
    expect(new RingWriter(new ArrayBuffer(RING_BYTES), 1, ENDS).reserve(1)!.mayBorrow).toBe(false);
    expect(new RingWriter(new ArrayBuffer(RING_BYTES), 1, ENDS, always(delayedCopy())).reserve(1)!.mayBorrow).toBe(
      true,
    );
  });

  it('copies as usual behind short batches, and past the cache again behind a long one', () => {
    const writer = new RingWriter(new ArrayBuffer(RING_BYTES), 1, ENDS, always(delayedCopy()));
    const lendsAfter = (packets: number) => {
      const batch = writer.reserve(packets)!;
      for (; batch.count < packets; batch.count++) writer.keep(64, 0, 0);
      writer.publish();
      writer.publish(); // Nothing was put into it: no batch.
      return writer.reserve(1)!.mayBorrow;
    };
    expect([1, 7, 1, 1, 1, 8, 1, 1, 1, 9, 1].map(lendsAfter)).toEqual([
      true,
      true,
      true,
      false,
      false,
      true,
      true,
      true,
      true,
      true,
      true,
    ]);
  });
});

describe('the self-test of a copy past the cache', () => {
  it('takes a right one', () => expect(copiesRight(delayedCopy())).toBe(true));

  it.each([
    ['that copies a byte too much', 1],
    ['that copies a byte too little', -1],
  ])('refuses one %s', (_, more) => {
    const { copy, drain } = delayedCopy();
    expect(copiesRight({ copy: (to, at, from, offset, n) => copy(to, at, from, offset, n + more), drain })).toBe(false);
  });
});

const lib = libC();
const library = typeof lib === 'string' ? undefined : loadStreamingCopy(lib);

describe.skipIf(library === undefined)('libpmem (where it is installed)', () => {
  it('fills a ring with right packets', () => expect(sendThrough(library!, 3 * RING_SLOTS)).toEqual([]));

  it('copies nothing that is not in its arrays', () => {
    const [short, long] = [new Uint8Array(8), new Uint8Array(16)];
    expect(() => library!.copy(short, 0, long, 0, 16)).toThrow(RangeError);
    expect(() => library!.copy(long, 0, short, 0, 16)).toThrow(RangeError);
    expect(() => library!.copy(long, -1, long, 0, 8)).toThrow(RangeError);
  });
});

describe('ROCEV2_SHM_COPY', () => {
  afterEach(() => vi.unstubAllEnvs());

  it('copies as usual where it says javascript, whatever the system has', () => {
    vi.stubEnv('ROCEV2_SHM_COPY', 'javascript');
    expect(loadStreamingCopy(lib as LibC)).toBeUndefined();
  });

  it('is refused where it says something else', () => {
    vi.stubEnv('ROCEV2_SHM_COPY', 'libmem');
    expect(() => loadStreamingCopy(lib as LibC)).toThrow(
      expect.objectContaining({
        code: 'ERR_ROCE_UNKNOWN_NAME',
        message: "ROCEV2_SHM_COPY is 'libmem' (it is 'javascript', or not set)",
      }),
    );
  });
});
