/**
 * Fields of an option or its reply, read in order. A field that does not fit is undefined, and so is every later one.
 */

import { readU16, readU32 } from '../../../core/bytes.js';
import { STRING_BYTES_MAX } from './wire.js';

const decoder = new TextDecoder('utf-8', { fatal: true });

export class OptionData {
  readonly #bytes: Uint8Array;
  #at = 0;
  #broken = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get atEnd(): boolean {
    return !this.#broken && this.#at === this.#bytes.length;
  }

  u32(): number | undefined {
    const at = this.#skip(4);
    return at === undefined ? undefined : readU32(this.#bytes, at);
  }

  string(): string | undefined {
    const length = this.u32();
    return length === undefined ? undefined : this.text(length);
  }

  text(length: number): string | undefined {
    const at = length <= STRING_BYTES_MAX ? this.#skip(length) : this.#break();
    if (at === undefined) return undefined;
    try {
      const text = decoder.decode(this.#bytes.subarray(at, at + length));
      return text.includes('\0') ? this.#break() : text;
    } catch {
      return this.#break();
    }
  }

  list16(): number[] | undefined {
    const countAt = this.#skip(2);
    if (countAt === undefined) return undefined;
    const count = readU16(this.#bytes, countAt);
    const at = this.#skip(2 * count);
    return at === undefined ? undefined : Array.from({ length: count }, (_, i) => readU16(this.#bytes, at + 2 * i));
  }

  #skip(length: number): number | undefined {
    if (this.#broken || length > this.#bytes.length - this.#at) return this.#break();
    const at = this.#at;
    this.#at += length;
    return at;
  }

  #break(): undefined {
    this.#broken = true;
    return undefined;
  }
}
