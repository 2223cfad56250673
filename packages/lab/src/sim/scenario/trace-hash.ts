/** A fingerprint of a run: every packet that a host sent or received, in order, by its BTH and ECN mark. */

import { readU32 } from 'rocev2/internal/core';

export type HashWords = readonly [number, number];

export interface HashOfHost {
  /** Of the host in the topology. */
  readonly place: number;
  readonly words: HashWords;
}

export class TraceHash {
  packets = 0;
  #a = 0x811c9dc5;
  #b = 0x9e3779b1;

  static of(hashes: readonly HashWords[]): TraceHash {
    const trace = new TraceHash();
    if (hashes.length === 1) [trace.#a, trace.#b] = hashes[0];
    else {
      for (const [a, b] of hashes) {
        trace.#mix(a);
        trace.#mix(b);
      }
    }
    return trace;
  }

  add(isSent: boolean, bytes: Uint8Array, offset: number, length: number, ecn: number): void {
    this.packets++;
    this.#mix((length << 3) | (ecn << 1) | Number(isSent));
    this.#mix(readU32(bytes, offset));
    this.#mix(readU32(bytes, offset + 4));
    this.#mix(readU32(bytes, offset + 8));
  }

  addNumber(value: number): void {
    this.#mix(Math.round(value) | 0);
  }

  get words(): HashWords {
    return [this.#a, this.#b];
  }

  toString(): string {
    return (this.#a >>> 0).toString(16).padStart(8, '0') + (this.#b >>> 0).toString(16).padStart(8, '0');
  }

  #mix(value: number): void {
    this.#a = Math.imul(this.#a ^ value, 0x01000193);
    this.#b = Math.imul((this.#b ^ value) + (this.#a >>> 16), 0x85ebca6b);
  }
}

export class TimedTraceHash extends TraceHash {
  readonly #nowNs: () => number;

  constructor(nowNs: () => number) {
    super();
    this.#nowNs = nowNs;
  }

  override add(isSent: boolean, bytes: Uint8Array, offset: number, length: number, ecn: number): void {
    super.add(isSent, bytes, offset, length, ecn);
    this.addNumber(this.#nowNs());
  }
}
