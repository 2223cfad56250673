/**
 * The common part of all rings: a header of 32-bit words and a power-of-two number of fixed-size elements in one
 * (Shared)ArrayBuffer.
 *
 *     word 0 producer   free-running index of the next element to write   (atomic store publishes)
 *     word 1 consumer   free-running index of the next element to take
 *     word 2 armed      completion rings: what the application waits for
 *     word 3 depth      number of elements, a power of two
 *     word 4 stride     bytes an element
 *     word 5..15        free for the kind of ring
 *
 * Indices run freely through 2^32 and are masked on use, so that producer - consumer is always the fill level.
 */

import { RoceError } from '../../core/errors.js';

export const RING_HEADER_BYTES = 64;
export const WORD_PRODUCER = 0;
export const WORD_CONSUMER = 1;
/** Header word of completion rings: ARM_NONE, ARM_SOLICITED or ARM_NEXT. */
export const WORD_ARMED = 2;
export const WORD_DEPTH = 3;
export const WORD_STRIDE = 4;

export const RING_DEPTH_MAX = 1 << 20;

/** `allocate` decides between plain and shared memory. */
export function createRingMemory(
  allocate: (bytes: number) => ArrayBufferLike,
  depth: number,
  strideBytes: number,
): ArrayBufferLike {
  if (!Number.isInteger(depth) || depth < 1 || depth > RING_DEPTH_MAX) {
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `a queue of ${depth} elements is not possible`,
      `give 1 to ${RING_DEPTH_MAX}`,
    );
  }
  const slots = 2 ** Math.ceil(Math.log2(depth));
  const memory = allocate(RING_HEADER_BYTES + slots * strideBytes);
  const header = new Int32Array(memory, 0, RING_HEADER_BYTES / 4);
  header[WORD_DEPTH] = slots;
  header[WORD_STRIDE] = strideBytes;
  return memory;
}

/**
 * One side's view of a ring; both sides construct it over the same memory. The other side may be another program, so
 * depth and stride are read once and checked.
 */
export class Ring {
  readonly memory: ArrayBufferLike;
  readonly header: Int32Array;
  readonly view: DataView;
  readonly bytes: Uint8Array;
  readonly depth: number;
  readonly mask: number;
  readonly strideBytes: number;

  /** Throws ERR_ROCE_INVALID_ARGUMENT unless the memory has a header and its elements, of `elementBytes` or more. */
  constructor(memory: ArrayBufferLike, elementBytes: number) {
    if (memory.byteLength < RING_HEADER_BYTES) throw notARing(memory, elementBytes);
    this.memory = memory;
    this.header = new Int32Array(memory, 0, RING_HEADER_BYTES / 4);
    this.view = new DataView(memory);
    this.bytes = new Uint8Array(memory);
    const depth = this.header[WORD_DEPTH];
    const strideBytes = this.header[WORD_STRIDE];
    const isPowerOfTwo = depth > 0 && depth <= RING_DEPTH_MAX && (depth & (depth - 1)) === 0;
    const isStride = strideBytes >= elementBytes && strideBytes % 4 === 0;
    if (!isPowerOfTwo || !isStride || RING_HEADER_BYTES + depth * strideBytes > memory.byteLength) {
      throw notARing(memory, elementBytes);
    }
    this.depth = depth;
    this.mask = depth - 1;
    this.strideBytes = strideBytes;
  }

  offsetOf(index: number): number {
    return RING_HEADER_BYTES + (index & this.mask) * this.strideBytes;
  }

  /** Setting it publishes the elements before it. */
  get producer(): number {
    return Atomics.load(this.header, WORD_PRODUCER) >>> 0;
  }

  set producer(index: number) {
    Atomics.store(this.header, WORD_PRODUCER, index | 0);
  }

  /** Setting it releases the elements before it. */
  get consumer(): number {
    return Atomics.load(this.header, WORD_CONSUMER) >>> 0;
  }

  set consumer(index: number) {
    Atomics.store(this.header, WORD_CONSUMER, index | 0);
  }

  /**
   * Whether the other side has published the element at this free-running index. A distance that the ring cannot hold
   * comes from a program that has damaged its header: nothing counts as published then, so no loop follows it.
   */
  isPublished(index: number): boolean {
    return (this.producer - index - 1) >>> 0 < this.depth;
  }

  /**
   * The side that changes to this ring copies the elements of `other` from index `from` to its producer. During
   * the copy, the other side writes to later elements only. Throws ERR_ROCE_LIMIT if they do not fit, ERR_ROCE_INVALID_ARGUMENT if
   * elements of the rings differ in size.
   */
  copyFrom(other: Ring, from: number): void {
    const count = (other.producer - from) >>> 0;
    if (this.strideBytes !== other.strideBytes) throw notARing(this.memory, other.strideBytes);
    if (count > Math.min(other.depth, this.depth)) {
      throw new RoceError('ERR_ROCE_LIMIT', `the queue holds ${count} elements, ${this.depth} would fit`);
    }
    for (let i = 0; i < count; i++) {
      const start = other.offsetOf(from + i);
      this.bytes.set(other.bytes.subarray(start, start + this.strideBytes), this.offsetOf(from + i));
    }
  }

  get fill(): number {
    return (this.producer - this.consumer) >>> 0;
  }
}

function notARing({ byteLength }: ArrayBufferLike, elementBytes: number): RoceError {
  return new RoceError(
    'ERR_ROCE_INVALID_ARGUMENT',
    `${byteLength} bytes are not a ring of elements of ${elementBytes} bytes or more`,
  );
}
