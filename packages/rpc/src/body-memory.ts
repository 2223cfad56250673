/**
 * Memory of requests at servers: it is taken before a body is received and kept until the request is answered. All
 * servers of a process share it, so that neither connections nor addresses add up. Connections whose peers stop in the
 * middle of a body are ended when others wait.
 */

import { type FairClient, FairQueue } from 'rocev2/internal/core';
import { SYSTEM_CLOCK } from 'rocev2/internal/driver';
import { decodeValue } from './value.js';

const MEMORY_BYTES_MAX = 256 << 20;
/** Of the clients of one address. */
const ADDRESS_PART = 1 / 4;
/** Memory that each connection always has. */
const SHARE_BYTES = 64 << 10;
/** An item of an array or a field of an object, decoded. */
const ELEMENT_BYTES = 64;

let ofProcess: FairQueue | undefined;

/** `bytesMax` gives a server a separate memory. */
export function bodyMemory(bytesMax: number | undefined): FairQueue {
  if (bytesMax !== undefined) return memoryOf(bytesMax);
  ofProcess ??= memoryOf(MEMORY_BYTES_MAX);
  return ofProcess;
}

function memoryOf(bytesMax: number): FairQueue {
  const groupBytesMax = bytesMax * ADDRESS_PART;
  return new FairQueue({ clock: SYSTEM_CLOCK, bytesMax, shareBytes: SHARE_BYTES, groupBytesMax });
}

/** A body that was received, with the memory that it and its value take. */
export class Body {
  readonly bytes: Buffer;
  readonly #memory: FairClient | undefined;
  readonly #elementsMax: number;
  #heldBytes: number;

  constructor(bytes: Buffer, elementsMax: number, memory: FairClient | undefined, heldBytes: number) {
    this.bytes = bytes;
    this.#elementsMax = elementsMax;
    this.#memory = memory;
    this.#heldBytes = heldBytes;
  }

  /** What a body of this length may take once it is decoded; an element has at least two bytes of JSON. */
  static costOf(bytes: number, elementsMax: number): number {
    return bytes + ELEMENT_BYTES * Math.min(bytes / 2, elementsMax);
  }

  /** Throws ERR_ROCE_MALFORMED, and ERR_ROCE_LIMIT for a value of too many elements. */
  decode(from = 0): unknown {
    const { value, elements } = decodeValue(this.bytes.subarray(from), this.#elementsMax);
    this.#give(this.#heldBytes - this.bytes.length - ELEMENT_BYTES * elements);
    return value;
  }

  /** The value is no longer used. Safe to call twice. */
  readonly release = (): void => this.#give(this.#heldBytes);

  #give(bytes: number): void {
    if (bytes <= 0) return;
    this.#heldBytes -= bytes;
    this.#memory?.give(bytes);
  }
}
