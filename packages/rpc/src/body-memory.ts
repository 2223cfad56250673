/**
 * Memory of requests and of answers at servers. That of a request is taken before its body is received and kept until
 * it is answered; that of an answer is taken before the method runs and kept until the peer has the answer. All servers
 * of a process share both, so that neither connections nor addresses add up. Connections whose peers stop in the middle
 * of a body, or take no answers, are ended when others wait.
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

/**
 * What an answer of unknown length takes before its method runs, and what each connection always has for one: where an
 * address has used up its part, a connection runs one method at a time.
 */
const ANSWER_BYTES = 8 << 10;

export interface ServerMemory {
  readonly bodies: FairQueue;
  readonly answers: FairQueue;
  /** A longer answer counts as one of this length: half of what an address has, so that it need not be unused. */
  readonly answerBytesMax: number;
}

let ofProcess: ServerMemory | undefined;

/** `bytesMax` gives a server a separate memory. */
export function serverMemory(bytesMax: number | undefined): ServerMemory {
  if (bytesMax !== undefined) return memoryOf(bytesMax);
  ofProcess ??= memoryOf(MEMORY_BYTES_MAX);
  return ofProcess;
}

function memoryOf(bytesMax: number): ServerMemory {
  const groupBytesMax = bytesMax * ADDRESS_PART;
  const options = { clock: SYSTEM_CLOCK, bytesMax, groupBytesMax };
  return {
    answerBytesMax: groupBytesMax / 2,
    bodies: new FairQueue({ ...options, shareBytes: SHARE_BYTES }),
    answers: new FairQueue({ ...options, shareBytes: ANSWER_BYTES }),
  };
}

/** The memory of one answer. */
export class AnswerMemory {
  readonly #memory: FairClient | undefined;
  readonly #bytesMax: number;
  #heldBytes = 0;

  constructor(memory: FairClient | undefined, bytesMax: number) {
    this.#memory = memory;
    this.#bytesMax = bytesMax;
  }

  /** Undefined: it has this size at once, as nearly always. */
  resize(length = ANSWER_BYTES): Promise<void> | undefined {
    const bytes = Math.min(length, this.#bytesMax);
    const missingBytes = bytes - this.#heldBytes;
    const granted = missingBytes > 0 ? this.#memory?.take(missingBytes) : undefined;
    if (missingBytes < 0) this.#memory?.give(-missingBytes);
    const done = () => {
      this.#heldBytes = bytes;
    };
    if (granted !== undefined) return granted.then(done);
    done();
    return undefined;
  }

  /** The peer has the answer, or never will. Safe to call twice. */
  readonly release = (): void => {
    const bytes = this.#heldBytes;
    this.#heldBytes = 0;
    if (bytes > 0) this.#memory?.give(bytes);
  };
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
