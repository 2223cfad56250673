/**
 * Command and response capsules: 64-byte submission queue entries and 16-byte completion queue entries, little-endian.
 */

export const SQE_BYTES = 64;
export const CQE_BYTES = 16;

export const FLAG_SGL = 0x40;
const FUSE_MASK = 0x03;
const PSDT_MASK = 0xc0;

export class NvmeCommand {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  get opcode(): number {
    return this.bytes[0];
  }

  /** Half of an operation of two commands. */
  get isFused(): boolean {
    return (this.bytes[1] & FUSE_MASK) !== 0;
  }

  get hasSgl(): boolean {
    return (this.bytes[1] & PSDT_MASK) !== 0;
  }

  get id(): number {
    return this.bytes.readUInt16LE(2);
  }

  get fctype(): number {
    return this.bytes[4];
  }

  get nsid(): number {
    return this.bytes.readUInt32LE(4);
  }

  dword(n: 10 | 11 | 12 | 13 | 14 | 15): number {
    return this.bytes.readUInt32LE(4 * n);
  }

  get lba(): bigint {
    return this.bytes.readBigUInt64LE(40);
  }
}

export interface Completion {
  readonly id: number;
  readonly status: number;
  readonly result: bigint;
  /** Place in the submission queue up to which the controller has taken entries; 0xffff without flow control. */
  readonly sqHead: number;
}

export function encodeCompletion({ id, status, result, sqHead }: Completion): Buffer {
  const bytes = Buffer.alloc(CQE_BYTES);
  bytes.writeBigUInt64LE(result, 0);
  bytes.writeUInt16LE(sqHead, 8);
  bytes.writeUInt16LE(id, 12);
  bytes.writeUInt16LE((status << 1) & 0xffff, 14);
  return bytes;
}

export function decodeCompletion(bytes: Buffer): Completion {
  return {
    result: bytes.readBigUInt64LE(0),
    sqHead: bytes.readUInt16LE(8),
    id: bytes.readUInt16LE(12),
    status: bytes.readUInt16LE(14) >>> 1,
  };
}
