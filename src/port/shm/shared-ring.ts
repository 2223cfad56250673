/**
 * One direction between two ports of a host: packets in memory that two processes share, with one writer and one
 * reader. Each treats the other's numbers as untrusted: an impossible one ends the ring, never the process.
 *
 *     header, 296 bytes: what does not change | what the writer changes | what the reader changes
 *     slots as in a batch: the headroom ends with length (0: empty), traffic class and IPv4 identification,
 *     32 bits each; then the UDP
 *     payload, whose data is at a multiple of 8
 *
 * The cost is each cache line that one side has written and the other reads, so these three numbers begin a line that
 * also has the packet's headers. Invariant: head <= tail <= head + slots, modulo 2^32; slots [head, tail) are the
 * reader's, the others the writer's.
 */

import { equalBytes, writeU16 } from '../../core/bytes.js';
import type { IpAddress } from '../../packet/address.js';
import {
  CACHE_LINE_BYTES,
  type RxDatagram,
  TX_HEADROOM_BYTES,
  TX_PAYLOAD_BYTES_MAX,
  TX_SLOT_BYTES,
  type TxBatch,
} from '../datagram.js';
import { type Copying, RingBatch } from './ring-batch.js';

/** Packets that may be in flight to a peer, and as many answers. */
export const RING_SLOTS = 512;
const NUMBERS_BYTES = 4 * CACHE_LINE_BYTES;
const FACTS_BYTES = 12;
const FACTS_OFFSET = TX_HEADROOM_BYTES - FACTS_BYTES;
/** So that the header of each slot begins a cache line. */
const HEADER_BYTES = NUMBERS_BYTES + (-FACTS_OFFSET & (CACHE_LINE_BYTES - 1));
const SLOT_WORDS = TX_SLOT_BYTES / 4;
const FIRST_WORD = (HEADER_BYTES + FACTS_OFFSET) / 4;
/** Bytes of a ring: 2.3 MB. */
export const RING_BYTES = HEADER_BYTES + RING_SLOTS * TX_SLOT_BYTES;

const MAGIC = 0x336d7372;
const WORD_MAGIC = 0;
const WORD_NONCE = 1;
const WORD_ENDS = 2;
const WORD_TAIL = 16;
const WORD_WRITER_CLOSED = 17;
const WORD_HEAD = 32;
const WORD_READER_OPEN = 33;
const WORD_READER_PID = 34;
const WORD_READER_ASLEEP = 48;

const READER_WAITED_FOR = 0;
const READER_OPEN = 1;
const READER_CLOSED = 2;

const END_BYTES = 20;

export interface RingEnds {
  readonly writer: IpAddress;
  readonly writerPort: number;
  readonly reader: IpAddress;
  readonly readerPort: number;
}

function bytesOfEnds({ writer, writerPort, reader, readerPort }: RingEnds): Uint8Array {
  const bytes = new Uint8Array(2 * END_BYTES);
  bytes.set(writer.gid, 0);
  writeU16(bytes, writer.gid.length, writerPort);
  bytes.set(reader.gid, END_BYTES);
  writeU16(bytes, END_BYTES + reader.gid.length, readerPort);
  return bytes;
}

function wordOf(index: number): number {
  return FIRST_WORD + (index & (RING_SLOTS - 1)) * SLOT_WORDS;
}

export class RingWriter {
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #inPlace: RingBatch;
  #tail = 0;
  #shown = 0;
  #head = 0;
  #isBroken = false;

  /** `nonce`: 32 bits that the reader must know. */
  constructor(memory: ArrayBuffer, nonce: number, ends: RingEnds, copying?: Copying) {
    this.#words = new Int32Array(memory);
    this.#bytes = new Uint8Array(memory);
    this.#inPlace = new RingBatch(RING_SLOTS, ends.writer, new Uint8Array(memory, HEADER_BYTES), copying);
    this.#words[WORD_NONCE] = nonce;
    this.#bytes.set(bytesOfEnds(ends), WORD_ENDS * 4);
    Atomics.store(this.#words, WORD_MAGIC, MAGIC);
  }

  get isOpen(): boolean {
    return !this.#isBroken && Atomics.load(this.#words, WORD_READER_OPEN) === READER_OPEN;
  }

  get readerPid(): number {
    return this.#words[WORD_READER_PID];
  }

  get isOver(): boolean {
    return this.#isBroken || Atomics.load(this.#words, WORD_READER_OPEN) === READER_CLOSED;
  }

  /**
   * A batch of `slots` at most inside the ring: {@link keep} or {@link skip} its packets in order, before anything else
   * is pushed.
   */
  reserve(slots: number): TxBatch | undefined {
    const room = this.#room(slots);
    if (room === 0) return undefined;
    const batch = this.#inPlace;
    batch.first = this.#tail & (RING_SLOTS - 1);
    batch.capacity = Math.min(slots, room, RING_SLOTS - batch.first);
    batch.count = 0;
    batch.begin();
    return batch;
  }

  /** The next packet of the reserved batch is in its slot. */
  keep(length: number, trafficClass: number, ipId: number): void {
    const word = wordOf(this.#tail);
    this.#words[word] = length;
    this.#words[word + 1] = trafficClass;
    this.#words[word + 2] = ipId;
    this.#tail = (this.#tail + 1) | 0;
  }

  /** The next slot of the reserved batch is empty. */
  skip(): void {
    this.keep(0, 0, 0);
  }

  /** Puts a packet into the ring; the reader sees it after {@link publish}. */
  push(payload: Uint8Array, trafficClass: number, ipId: number): boolean {
    if (this.#room(1) === 0) return false;
    const slot = this.#tail & (RING_SLOTS - 1);
    this.#bytes.set(payload, HEADER_BYTES + slot * TX_SLOT_BYTES + TX_HEADROOM_BYTES);
    this.keep(payload.length, trafficClass, ipId);
    return true;
  }

  /** Free slots, read again only when fewer than `wanted` are known. */
  #room(wanted: number): number {
    const known = RING_SLOTS - ((this.#tail - this.#head) | 0);
    if (known >= wanted) return known;
    const head = Atomics.load(this.#words, WORD_HEAD);
    const used = (this.#tail - head) | 0;
    if (used < 0 || used > RING_SLOTS || ((head - this.#head) | 0) < 0) {
      this.#isBroken = true;
      return 0;
    }
    this.#head = head;
    return RING_SLOTS - used;
  }

  /** True: the reader sleeps and has to be woken; reported once. */
  publish(): boolean {
    const packets = (this.#tail - this.#shown) | 0;
    if (packets > 0) {
      this.#inPlace.settle(packets);
      this.#shown = this.#tail;
      Atomics.store(this.#words, WORD_TAIL, this.#tail);
    }
    return (
      Atomics.load(this.#words, WORD_READER_ASLEEP) !== 0 && Atomics.exchange(this.#words, WORD_READER_ASLEEP, 0) !== 0
    );
  }

  close(): void {
    Atomics.store(this.#words, WORD_WRITER_CLOSED, 1);
  }
}

export class RingReader {
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  #head = 0;
  #isBroken = false;

  private constructor(memory: ArrayBuffer) {
    this.#words = new Int32Array(memory);
    this.#bytes = new Uint8Array(memory);
  }

  /**
   * Undefined when `memory` holds no such ring, or one between other ports than `ends`, as this port sees them: a relay
   * is in between, and a ring would bypass it.
   */
  static open(memory: ArrayBuffer, nonce: number, pid: number, ends: RingEnds): RingReader | undefined {
    if (memory.byteLength !== RING_BYTES) return undefined;
    const reader = new RingReader(memory);
    const words = reader.#words;
    if (Atomics.load(words, WORD_MAGIC) !== MAGIC || words[WORD_NONCE] !== nonce) return undefined;
    const own = reader.#bytes.subarray(WORD_ENDS * 4, WORD_ENDS * 4 + 2 * END_BYTES);
    if (!equalBytes(own, bytesOfEnds(ends))) return undefined;
    words[WORD_READER_PID] = pid;
    const before = Atomics.compareExchange(words, WORD_READER_OPEN, READER_WAITED_FOR, READER_OPEN);
    return before === READER_WAITED_FOR ? reader : undefined;
  }

  get hasNews(): boolean {
    return Atomics.load(this.#words, WORD_TAIL) !== this.#head;
  }

  get isOver(): boolean {
    if (this.#isBroken) return true;
    return Atomics.load(this.#words, WORD_WRITER_CLOSED) !== 0 && !this.hasNews;
  }

  /** The slots are the writer's again afterwards. */
  receive(rx: RxDatagram, budget: number, onDatagram: (datagram: RxDatagram) => void): number {
    const words = this.#words;
    const available = (Atomics.load(words, WORD_TAIL) - this.#head) | 0;
    if (available === 0 || this.#isBroken) return 0;
    if (available < 0 || available > RING_SLOTS) {
      this.#isBroken = true;
      return 0;
    }
    const slots = Math.min(available, budget);
    let handed = 0;
    rx.bytes = this.#bytes;
    let nextLength = words[wordOf(this.#head)];
    for (let i = 0; i < slots && !this.#isBroken; i++) {
      const slot = this.#head & (RING_SLOTS - 1);
      const word = wordOf(slot);
      const length = nextLength;
      const trafficClass = words[word + 1];
      this.#head = (this.#head + 1) | 0;
      // Read ahead, so that the cache line with the headers of the next packet is fetched while this packet is
      // processed.
      if (i + 1 < slots) nextLength = words[wordOf(slot + 1)];
      if (length === 0) continue;
      if (length < 0 || length > TX_PAYLOAD_BYTES_MAX) {
        this.#isBroken = true;
        return handed;
      }
      rx.offset = HEADER_BYTES + slot * TX_SLOT_BYTES + TX_HEADROOM_BYTES;
      rx.length = length;
      rx.ecn = trafficClass & 3;
      rx.dscp = (trafficClass >> 2) & 63;
      rx.ipId = words[word + 2] & 0xffff;
      handed++;
      onDatagram(rx);
    }
    Atomics.store(words, WORD_HEAD, this.#head);
    return handed;
  }

  /** False: something has been published, check again. */
  sleep(): boolean {
    Atomics.store(this.#words, WORD_READER_ASLEEP, 1);
    return !this.hasNews;
  }

  wake(): void {
    Atomics.store(this.#words, WORD_READER_ASLEEP, 0);
  }

  close(): void {
    Atomics.store(this.#words, WORD_READER_OPEN, READER_CLOSED);
  }
}
