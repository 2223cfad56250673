/** Command and response capsules: 64-byte submission queue entries and 16-byte completion queue entries, little-endian. */

/** Bytes of a submission queue entry. */
export const SQE_BYTES = 64;
/** Bytes of a completion queue entry. */
export const CQE_BYTES = 16;

/** Byte 1 of an entry: data is described by an SGL, as always over fabrics. */
export const FLAG_SGL = 0x40;
const FUSE_MASK = 0x03;
const PSDT_MASK = 0xc0;

/** A submission queue entry. */
export class NvmeCommand {
  /** Its 64 bytes. */
  readonly bytes: Buffer;

  /** Takes over the bytes, which must not change any more. */
  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** What is to be done; its meaning depends on the kind of queue. */
  get opcode(): number {
    return this.bytes[0];
  }

  /** It is not half of a fused operation, and has an SGL. */
  get hasProperFlags(): boolean {
    return (this.bytes[1] & FUSE_MASK) === 0 && (this.bytes[1] & PSDT_MASK) !== 0;
  }

  /** The host's mark, 16 bits; its completion carries it, too. */
  get id(): number {
    return this.bytes.readUInt16LE(2);
  }

  /** Fabrics commands: which of them. */
  get fctype(): number {
    return this.bytes[4];
  }

  /** Namespace that it is about. */
  get nsid(): number {
    return this.bytes.readUInt32LE(4);
  }

  /** Command dword 10 to 15. */
  dword(n: 10 | 11 | 12 | 13 | 14 | 15): number {
    return this.bytes.readUInt32LE(4 * n);
  }

  /** Starting LBA of commands on blocks, 64 bits. */
  get lba(): bigint {
    return this.bytes.readBigUInt64LE(40);
  }
}

/** A completion queue entry. */
export interface Completion {
  /** Of the command. */
  readonly id: number;
  /** Type and code, with DNR; without the phase bit. */
  readonly status: number;
  /** Dwords 0 and 1. */
  readonly result: bigint;
  /** Place in the submission queue up to which the controller has taken entries; 0xffff without flow control. */
  readonly sqHead: number;
}

/** The 16 bytes of a completion. */
export function encodeCompletion({ id, status, result, sqHead }: Completion): Buffer {
  const bytes = Buffer.alloc(CQE_BYTES);
  bytes.writeBigUInt64LE(result, 0);
  bytes.writeUInt16LE(sqHead, 8);
  bytes.writeUInt16LE(id, 12);
  bytes.writeUInt16LE((status << 1) & 0xffff, 14);
  return bytes;
}

/** Reads a completion; `bytes` has at least 16. */
export function decodeCompletion(bytes: Buffer): Completion {
  return {
    result: bytes.readBigUInt64LE(0),
    sqHead: bytes.readUInt16LE(8),
    id: bytes.readUInt16LE(12),
    status: bytes.readUInt16LE(14) >>> 1,
  };
}
