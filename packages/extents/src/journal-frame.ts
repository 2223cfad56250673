/**
 * A frame of a journal: one change of one file of its node. Little-endian:
 *
 *     magic 4   version 2   kind 2   life 4   node 4   position 8   offset 8   length 4
 *     name length 4   zero 20   crc 4
 *     name, data, zeros up to a multiple of 512
 *
 * `crc` is the CRC-32C of the 60 bytes before it, the name and the data, and begins with that of the cluster's name. A
 * frame says its node, the start of it in which it was written, and its position, so that an older one, that of another
 * node, one that went elsewhere, and data that look like a frame are not taken for it. It begins at a sector of its
 * own.
 */

import { crc32c } from 'rocev2/internal/core';

export const FRAME_ALIGN = 512;
export const FRAME_HEAD_BYTES = 64;

const MAGIC = 0x46_4a_76_53; // "SvJF"
/** The head of the journal has it, so that other versions do not take its frames for none. */
export const FRAME_VERSION = 1;
const POSITION_AT = 16;
const CRC_AT = 60;
const NAME_MAX = 255;

export interface FileChange {
  readonly name: string;
  /** Where in the file, bytes. */
  readonly offset: number;
  readonly bytes: Uint8Array | undefined;
}

export interface FrameOwner {
  readonly cluster: string;
  readonly node: number;
  readonly life: number;
}

export class FrameFormat {
  readonly #owner: FrameOwner;
  readonly #seed: number;

  constructor(owner: FrameOwner) {
    this.#owner = owner;
    this.#seed = crc32c(Buffer.from(owner.cluster));
  }

  encode({ name, offset, bytes }: FileChange): Buffer {
    const nameBytes = Buffer.byteLength(name);
    const length = bytes?.length ?? 0;
    const frame = Buffer.alloc(frameBytes(nameBytes, length));
    frame.writeUInt32LE(MAGIC, 0);
    frame.writeUInt16LE(FRAME_VERSION, 4);
    frame.writeUInt16LE(bytes === undefined ? 1 : 0, 6);
    frame.writeUInt32LE(this.#owner.life, 8);
    frame.writeUInt32LE(this.#owner.node, 12);
    frame.writeBigUInt64LE(BigInt(offset), 24);
    frame.writeUInt32LE(length, 32);
    frame.writeUInt32LE(nameBytes, 36);
    frame.write(name, FRAME_HEAD_BYTES);
    if (bytes !== undefined) frame.set(bytes, FRAME_HEAD_BYTES + nameBytes);
    return frame;
  }

  place(frame: Buffer, position: number): void {
    frame.writeBigUInt64LE(BigInt(position), POSITION_AT);
    frame.writeUInt32LE(this.#crc(frame), CRC_AT);
  }

  look(bytes: Buffer): { readonly length: number; readonly position: number } | undefined {
    if (bytes.length < FRAME_HEAD_BYTES || bytes.readUInt32LE(0) !== MAGIC || bytes.readUInt16LE(4) !== FRAME_VERSION)
      return undefined;
    const { life, node } = this.#owner;
    const nameBytes = bytes.readUInt32LE(36);
    if (bytes.readUInt32LE(8) !== life || bytes.readUInt32LE(12) !== node || nameBytes > NAME_MAX) return undefined;
    return {
      length: frameBytes(nameBytes, bytes.readUInt32LE(32)),
      position: Number(bytes.readBigUInt64LE(POSITION_AT)),
    };
  }

  isIntact(frame: Buffer): boolean {
    return frame.readUInt32LE(CRC_AT) === this.#crc(frame);
  }

  decode(frame: Buffer): FileChange {
    const dataFrom = FRAME_HEAD_BYTES + frame.readUInt32LE(36);
    return {
      name: frame.toString('utf8', FRAME_HEAD_BYTES, dataFrom),
      offset: Number(frame.readBigUInt64LE(24)),
      bytes: frame.readUInt16LE(6) === 1 ? undefined : frame.subarray(dataFrom, dataFrom + frame.readUInt32LE(32)),
    };
  }

  #crc(frame: Buffer): number {
    const end = FRAME_HEAD_BYTES + frame.readUInt32LE(36) + frame.readUInt32LE(32);
    return crc32c(frame.subarray(FRAME_HEAD_BYTES, end), crc32c(frame.subarray(0, CRC_AT), this.#seed));
  }
}

function frameBytes(nameBytes: number, length: number): number {
  return Math.ceil((FRAME_HEAD_BYTES + nameBytes + length) / FRAME_ALIGN) * FRAME_ALIGN;
}
