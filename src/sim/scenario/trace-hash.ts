/** A fingerprint of a run: every packet that a host sent or took in, in order, by its BTH and its ECN mark. Two runs that agree did the same. */

import { readU32 } from '../../core/bytes.js';

/** The running fingerprint of one simulation. */
export class TraceHash {
  /** Packets that went in. */
  packets = 0;
  #a = 0x811c9dc5;
  #b = 0x9e3779b1;

  /** Takes in one packet: its direction, length, ECN bits, and the 12 bytes of its BTH at `offset`. */
  add(isSent: boolean, bytes: Uint8Array, offset: number, length: number, ecn: number): void {
    this.packets++;
    this.#mix((length << 3) | (ecn << 1) | Number(isSent));
    this.#mix(readU32(bytes, offset));
    this.#mix(readU32(bytes, offset + 4));
    this.#mix(readU32(bytes, offset + 8));
  }

  /** The time of what was added, or anything else that tells runs apart. */
  addNumber(value: number): void {
    this.#mix(Math.round(value) | 0);
  }

  /** 16 hex digits. */
  toString(): string {
    return (this.#a >>> 0).toString(16).padStart(8, '0') + (this.#b >>> 0).toString(16).padStart(8, '0');
  }

  /** Two multiplicative hashes with different constants. */
  #mix(value: number): void {
    this.#a = Math.imul(this.#a ^ value, 0x01000193);
    this.#b = Math.imul((this.#b ^ value) + (this.#a >>> 16), 0x85ebca6b);
  }
}
