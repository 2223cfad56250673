/**
 * A small value at the head of a file that survives any crash: two slots of one sector, written alternately, each with
 * a number and a CRC. The intact one with the larger number holds.
 */

import { crc32c, PromiseMutex } from 'rocev2/internal/core';
import type { ExtentFile } from './extent-files.js';
import { otherMark, otherVersion } from './format-mark.js';

export const SLOTS_BYTES = 4096;

const SLOT_BYTES = 512;
const SLOT_AT = [0, 2048] as const;
const HEAD_BYTES = 16;
const MARK = 'SvRD';

export class DurableValue<T> {
  readonly #file: ExtentFile;
  #number: number;
  #value: T | undefined;
  readonly #storing = new PromiseMutex();

  private constructor(file: ExtentFile, number: number, value: T | undefined) {
    this.#file = file;
    this.#number = number;
    this.#value = value;
  }

  /** `what`: the name of the file in the error for another version. */
  static async load<T>(file: ExtentFile, what = 'a file of the folder'): Promise<DurableValue<T>> {
    let best: { number: number; value: T } | undefined;
    const marks: (string | undefined)[] = [];
    for (const at of SLOT_AT) {
      const bytes = await file.read(at, SLOT_BYTES);
      marks.push(otherMark(bytes, MARK));
      const slot = readSlot<T>(bytes);
      if (slot !== undefined && (best === undefined || slot.number > best.number)) best = slot;
    }
    // Both slots say so: no flipped bit does.
    if (marks[0] !== undefined && marks.every((mark) => mark === marks[0])) throw otherVersion(what, marks[0]);
    return new DurableValue<T>(file, best?.number ?? 0, best?.value);
  }

  get value(): T | undefined {
    return this.#value;
  }

  /** Values become so in the order of the calls. */
  store(value: T): Promise<void> {
    return this.update(() => value);
  }

  /** `change`: the new value from the last one. It may return the last one, and then nothing is written. */
  update(change: (last: T | undefined) => T): Promise<void> {
    return this.#storing.run(async () => {
      const value = change(this.#value);
      if (value === this.#value) return;
      const number = this.#number + 1;
      for (const at of SLOT_AT) {
        await this.#file.write(at, slotOf(number, value));
        await this.#file.sync();
      }
      this.#number = number;
      this.#value = value;
    });
  }
}

function slotOf(number: number, value: unknown): Buffer {
  const text = Buffer.from(JSON.stringify(value));
  const slot = Buffer.alloc(SLOT_BYTES);
  slot.write(MARK, 'latin1');
  slot.writeUInt32LE(number, 4);
  slot.writeUInt32LE(text.length, 8);
  text.copy(slot, HEAD_BYTES);
  slot.writeUInt32LE(slotCrc(slot, text.length), 12);
  return slot;
}

function slotCrc(slot: Buffer, length: number): number {
  return crc32c(slot.subarray(HEAD_BYTES, HEAD_BYTES + length), crc32c(slot.subarray(0, 12)));
}

function readSlot<T>(slot: Buffer): { number: number; value: T } | undefined {
  if (slot.length < SLOT_BYTES || slot.toString('latin1', 0, 4) !== MARK) return undefined;
  const length = slot.readUInt32LE(8);
  if (length > SLOT_BYTES - HEAD_BYTES || slot.readUInt32LE(12) !== slotCrc(slot, length)) return undefined;
  return {
    number: slot.readUInt32LE(4),
    value: JSON.parse(slot.toString('utf8', HEAD_BYTES, HEAD_BYTES + length)) as T,
  };
}
