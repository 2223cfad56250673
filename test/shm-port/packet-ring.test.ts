/** The ring alone: what one end writes the other reads, and neither believes what cannot be. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { equalBytes } from '../../src/core/bytes.js';
import { SeededRandom } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';
import { type RxDatagram, TX_PAYLOAD_BYTES_MAX, TX_SLOT_BYTES } from '../../src/port/datagram.js';
import { RING_BYTES, RING_SLOTS, RingReader, RingWriter } from '../../src/port/shm/shared-ring.js';

const SOURCE = IpAddress.parse('127.0.0.1');
const ENDS = { writer: SOURCE, writerPort: 4791, reader: IpAddress.parse('127.0.0.2'), readerPort: 5000 };
const NONCE = 0x12345678;
const PID = 42;
/** Words of the header. */
const WORD_TAIL = 16;
const WORD_HEAD = 32;
const WORD_READER_ASLEEP = 48;
/** Of slot 0, where a line of the cache begins. */
const WORD_FIRST_LENGTH = 96;

function rxRecord(): RxDatagram {
  const address = SOURCE;
  const bytes = new Uint8Array(0);
  const rest = { sourcePort: 0, destinationPort: 0, ecn: 0, dscp: 0, ipId: 0 };
  return { bytes, offset: 0, length: 0, source: address, destination: address, ...rest };
}

function pair() {
  const memory = new ArrayBuffer(RING_BYTES);
  const writer = new RingWriter(memory, NONCE, ENDS);
  const reader = RingReader.open(memory, NONCE, PID, ENDS)!;
  const words = new Int32Array(memory);
  const rx = rxRecord();
  const read = (budget = RING_SLOTS) => {
    const got: Array<{ payload: Uint8Array; ecn: number; dscp: number; ipId: number }> = [];
    reader.receive(rx, budget, ({ bytes, offset, length, ecn, dscp, ipId }) =>
      got.push({ payload: bytes.slice(offset, offset + length), ecn, dscp, ipId }),
    );
    return got;
  };
  return { memory, words, writer, reader, read };
}

/** Runs `outer`, and `inner` before its atomic operation number `at`; returns what both return, and how many operations `outer` has. */
function interleave(outer: () => boolean, inner: () => boolean, at: number) {
  let operations = 0;
  let isInside = false;
  let innerResult: boolean | undefined;
  const before = () => {
    if (isInside || operations++ !== at) return;
    isInside = true;
    innerResult = inner();
    isInside = false;
  };
  for (const name of ['load', 'store', 'exchange'] as const) {
    const original = Atomics[name] as (...args: unknown[]) => number;
    vi.spyOn(Atomics, name).mockImplementation(((...args: unknown[]) => {
      before();
      return original(...args);
    }) as never);
  }
  const outerResult = outer();
  vi.restoreAllMocks();
  innerResult ??= inner();
  return { outer: outerResult, inner: innerResult, operations };
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe('a ring', () => {
  it('is open once a reader has it, and tells the process of the reader', () => {
    const memory = new ArrayBuffer(RING_BYTES);
    const writer = new RingWriter(memory, NONCE, ENDS);
    expect(writer.isOpen).toBe(false);
    const reader = RingReader.open(memory, NONCE, PID, ENDS);
    expect([writer.isOpen, writer.readerPid]).toEqual([true, PID]);
    reader?.close();
    expect([writer.isOpen, writer.isOver]).toEqual([false, true]);
  });

  it('has one reader, who knows its number', () => {
    const memory = new ArrayBuffer(RING_BYTES);
    new RingWriter(memory, NONCE, ENDS);
    expect(RingReader.open(memory, NONCE + 1, PID, ENDS)).toBeUndefined();
    expect(RingReader.open(memory, NONCE, PID, ENDS)).toBeDefined();
    expect(RingReader.open(memory, NONCE, PID, ENDS)).toBeUndefined();
    expect(RingReader.open(new ArrayBuffer(RING_BYTES), NONCE, PID, ENDS)).toBeUndefined();
    expect(RingReader.open(new ArrayBuffer(64), NONCE, PID, ENDS)).toBeUndefined();
  });

  it.each([
    { writer: IpAddress.parse('127.0.0.9') },
    { writerPort: 4792 },
    { reader: IpAddress.parse('fd00::2') },
    { readerPort: 4791 },
  ])('is between two ports, and none for whoever sees others: %o', (other) => {
    const memory = new ArrayBuffer(RING_BYTES);
    const writer = new RingWriter(memory, NONCE, ENDS);
    expect(RingReader.open(memory, NONCE, PID, { ...ENDS, ...other })).toBeUndefined();
    expect(writer.isOpen).toBe(false);
    expect(RingReader.open(memory, NONCE, PID, ENDS)).toBeDefined();
  });

  it('carries packets of all lengths in order, with traffic class and identification, through several rounds', () => {
    const { writer, read } = pair();
    const random = new SeededRandom(3).stream('ring');
    for (let round = 0; round < 20; round++) {
      const sent = Array.from({ length: 1 + (random.u32() % 100) }, () => ({
        payload: Uint8Array.from({ length: random.u32() % (TX_PAYLOAD_BYTES_MAX + 1) }, () => random.u32() & 0xff),
        ecn: random.u32() & 3,
        dscp: random.u32() & 63,
        ipId: random.u32() & 0xffff,
      }));
      for (const { payload, ecn, dscp, ipId } of sent) expect(writer.push(payload, (dscp << 2) | ecn, ipId)).toBe(true);
      expect(read()).toEqual([]); // Not published yet.
      writer.publish();
      const got = read();
      expect(got.map(({ payload: _, ...rest }) => rest)).toEqual(sent.map(({ payload: _, ...rest }) => rest));
      expect(got.every(({ payload }, i) => equalBytes(payload, sent[i].payload))).toBe(true);
    }
  });

  it('has the facts of each packet at the beginning of a line of the cache, and its headers in the same one', () => {
    const { memory, words, writer } = pair();
    const bytes = new Uint8Array(memory);
    for (let i = 0; i < RING_SLOTS; i++) {
      writer.push(new Uint8Array(28 + i).fill(7), 0, 0);
      const word = WORD_FIRST_LENGTH + (i * TX_SLOT_BYTES) / 4;
      expect([(word * 4) % 64, words[word], bytes[word * 4 + 12], bytes[word * 4 + 39]]).toEqual([0, 28 + i, 7, 7]);
    }
  });

  it('is full at its size, and has room again when something was read', () => {
    const { writer, read } = pair();
    const payload = new Uint8Array(20);
    for (let i = 0; i < RING_SLOTS; i++) expect(writer.push(payload, 0, i)).toBe(true);
    expect(writer.push(payload, 0, 0)).toBe(false);
    writer.publish();
    expect(read(10).map(({ ipId }) => ipId)).toEqual([...Array(10).keys()]);
    for (let i = 0; i < 10; i++) expect(writer.push(payload, 0, RING_SLOTS + i)).toBe(true);
    expect(writer.push(payload, 0, 0)).toBe(false);
  });

  it('lends its slots, across its end too: what is kept is read where it was written, what is skipped is not', () => {
    const { writer, read } = pair();
    const random = new SeededRandom(5).stream('lend');
    let number = 0;
    for (let round = 0; round < 100; round++) {
      const expected: number[] = [];
      const batch = writer.reserve(60)!;
      expect(batch.capacity).toBeLessThanOrEqual(60);
      const used = random.u32() % (batch.capacity + 1);
      for (let slot = 0; slot < used; slot++) {
        batch.slab.fill(number & 0xff, batch.payloadOffset(slot), batch.payloadOffset(slot) + 100);
        if ((random.u32() & 3) === 0) writer.skip();
        else {
          writer.keep(100, 0, number & 0xffff);
          expected.push(number & 0xffff);
        }
        number++;
      }
      writer.publish();
      const got = read();
      expect(got.map(({ ipId }) => ipId)).toEqual(expected);
      expect(got.every(({ payload, ipId }) => payload.length === 100 && payload[99] === (ipId & 0xff))).toBe(true);
    }
  });

  it('lends no more than what is free, and nothing while it is full', () => {
    const { writer, read } = pair();
    for (let left = RING_SLOTS; left > 0; ) {
      const { capacity } = writer.reserve(60)!;
      expect(capacity).toBe(Math.min(60, left));
      for (let i = 0; i < capacity; i++) writer.keep(20, 0, 0);
      left -= capacity;
    }
    expect(writer.reserve(60)).toBeUndefined();
    writer.publish();
    read(7);
    expect(writer.reserve(60)?.capacity).toBe(7);
  });

  it('goes on when its counts wrap', () => {
    const { writer, words, read } = pair();
    const payload = new Uint8Array(20);
    for (let i = 0; i < 3 * RING_SLOTS; i++) {
      writer.push(payload, 0, i & 0xffff);
      writer.publish();
      expect(read()).toHaveLength(1);
    }
    expect(words[WORD_TAIL]).toBe(3 * RING_SLOTS);
  });

  it('wakes a reader that sleeps once, and none that does not', () => {
    const { writer, reader } = pair();
    const push = () => {
      writer.push(new Uint8Array(20), 0, 0);
      return writer.publish();
    };
    expect(push()).toBe(false);
    expect(reader.sleep()).toBe(false); // There is something to read.
    reader.wake();
    reader.receive(rxRecord(), RING_SLOTS, () => {});
    expect(reader.sleep()).toBe(true);
    expect([push(), push()]).toEqual([true, false]);
  });

  it('lets no reader sleep over a packet, whichever operation of one end comes between those of the other', () => {
    for (const outer of ['reader', 'writer'] as const) {
      for (let at = 0, operations = 1; at <= operations; at++) {
        const { writer, reader, read } = pair();
        writer.push(Uint8Array.of(1), 0, 0);
        const sleep = () => reader.sleep();
        const publish = () => writer.publish();
        const ran = outer === 'reader' ? interleave(sleep, publish, at) : interleave(publish, sleep, at);
        const [sleeps, rings] = outer === 'reader' ? [ran.outer, ran.inner] : [ran.inner, ran.outer];
        expect(!sleeps || rings, `${outer} interrupted before operation ${at}`).toBe(true);
        expect(read()).toHaveLength(1);
        operations = ran.operations;
      }
    }
  });

  it('would lose a reader that looked before it asked to be woken (twin)', () => {
    const lost = [0, 1, 2].filter((at) => {
      const { words, writer, reader } = pair();
      writer.push(Uint8Array.of(1), 0, 0);
      const looksFirst = () => {
        const sleeps = !reader.hasNews;
        Atomics.store(words, WORD_READER_ASLEEP, 1);
        return sleeps;
      };
      const { outer: sleeps, inner: rings } = interleave(looksFirst, () => writer.publish(), at);
      return sleeps && !rings;
    });
    expect(lost).toEqual([1]);
  });

  it('is over for the reader when the writer has left and everything is read', () => {
    const { writer, reader, read } = pair();
    writer.push(new Uint8Array(20), 0, 0);
    writer.publish();
    writer.close();
    expect(reader.isOver).toBe(false);
    expect(read()).toHaveLength(1);
    expect(reader.isOver).toBe(true);
  });
});

describe('a hostile end', () => {
  it.each([-1, RING_SLOTS + 1, 0x7fff_ffff, -0x8000_0000])(
    'writes the tail %i: the ring is over, nothing is read',
    (tail) => {
      const { words, reader, read } = pair();
      words[WORD_TAIL] = tail;
      expect(read()).toEqual([]);
      expect(reader.isOver).toBe(true);
    },
  );

  it.each([-1, TX_PAYLOAD_BYTES_MAX + 1, 0x7fff_ffff])('writes the length %i: the ring is over', (length) => {
    const { words, writer, reader, read } = pair();
    writer.push(new Uint8Array(20), 0, 0);
    writer.publish();
    words[WORD_FIRST_LENGTH] = length;
    expect(read()).toEqual([]);
    expect(reader.isOver).toBe(true);
  });

  it.each([-1, RING_SLOTS + 1, 0x7fff_ffff])('writes the head %i: the ring is over for the writer', (head) => {
    const { words, writer } = pair();
    const payload = new Uint8Array(20);
    for (let i = 0; i < RING_SLOTS; i++) writer.push(payload, 0, 0);
    words[WORD_HEAD] = head;
    expect(writer.push(payload, 0, 0)).toBe(false);
    expect(writer.isOver).toBe(true);
  });

  it('scribbles over the whole ring: each packet that is read lies inside it, and nothing throws', () => {
    const random = new SeededRandom(7).stream('scribble');
    for (let round = 0; round < 300; round++) {
      const { memory, words, writer, reader } = pair();
      const bytes = new Uint8Array(memory);
      for (let i = 0; i < 20; i++) writer.push(new Uint8Array(100), 0, i);
      writer.publish();
      for (let i = 0; i < 50; i++) bytes[random.u32() % (random.u32() & 1 ? 256 : RING_BYTES)] = random.u32() & 0xff;
      if ((random.u32() & 3) === 0) words[WORD_TAIL] = random.u32() % 64;
      reader.receive(rxRecord(), RING_SLOTS, ({ bytes: b, offset, length }) => {
        expect(offset >= 256 && length >= 0 && offset + length <= b.length).toBe(true);
      });
      writer.push(new Uint8Array(100), 0, 0);
      writer.publish();
    }
  });
});
