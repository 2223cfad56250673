/**
 * Messages between the C library and the NIC process: elements of 256 bytes on a Unix stream socket, little-endian.
 * u32 operation (in an answer: errno, 0 for success), u32 0, then 31 u64. native/shim.h has the same numbers.
 */

import { constants } from 'node:os';
import { RoceError, type RoceErrorCode } from 'rocev2/internal/core';

export const PROTOCOL_VERSION = 4;
export const MESSAGE_BYTES = 256;
const ARGS_OFFSET = 8;

export const OP_HELLO = 1;
export const OP_ALLOC_PD = 2;
export const OP_DEALLOC_PD = 3;
export const OP_REG_MR = 4;
export const OP_DEREG_MR = 5;
export const OP_CREATE_CQ = 6;
export const OP_DESTROY_CQ = 7;
export const OP_CREATE_SRQ = 8;
export const OP_MODIFY_SRQ = 9;
export const OP_DESTROY_SRQ = 10;
export const OP_CREATE_QP = 11;
export const OP_MODIFY_QP = 12;
export const OP_QUERY_QP = 13;
export const OP_DESTROY_QP = 14;
export const OP_CREATE_AH = 15;
export const OP_DESTROY_AH = 16;
export const OP_ALLOC_MW = 17;
export const OP_DEALLOC_MW = 18;
export const OP_REREG_MR = 19;
export const OP_RESIZE_CQ = 20;
export const OP_RESIZE_SRQ = 21;
export const OP_QUERY_SRQ = 22;

/** What a connection is for: the second argument of its first message. */
export const KIND_LIST = 0;
export const KIND_CONTEXT = 1;
export const KIND_WAKE = 2;
export const KIND_EVENTS = 3;
export const KIND_CHANNEL = 4;
export const KIND_CM = 5;
export const KIND_CM_EVENTS = 6;

/** Argument of the answer to a first message: PID of the NIC process. */
export const PID_ARGUMENT = 5;

/** One message; the answer replaces the arguments in it. */
export class NicMessage {
  readonly #view: DataView;
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  get operation(): number {
    return this.#view.getUint32(0, true);
  }

  /** Makes it an answer: 0, or the errno of a refusal. */
  answer(errno: number): void {
    this.#view.setUint32(0, errno, true);
  }

  /** A number below 2^53; ERR_ROCE_OUT_OF_RANGE for larger ones. */
  number(index: number): number {
    const value = Number(this.long(index));
    if (value <= Number.MAX_SAFE_INTEGER) return value;
    throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `argument ${index} of a command is ${value}`);
  }

  long(index: number): bigint {
    return this.#view.getBigUint64(ARGS_OFFSET + 8 * index, true);
  }

  set(index: number, value: number | bigint): void {
    this.#view.setBigUint64(ARGS_OFFSET + 8 * index, BigInt(value), true);
  }

  /** A copy of the 16 bytes in two arguments. */
  gid(index: number): Uint8Array {
    return Uint8Array.from(this.bytes.subarray(ARGS_OFFSET + 8 * index, ARGS_OFFSET + 8 * index + 16));
  }

  setGid(index: number, gid: Uint8Array): void {
    this.bytes.set(gid, ARGS_OFFSET + 8 * index);
  }
}

const ERRNO: Partial<Record<RoceErrorCode, number>> = {
  ERR_ROCE_BUSY: constants.errno.EBUSY,
  ERR_ROCE_CLOSED: constants.errno.EIO,
  ERR_ROCE_IO: constants.errno.EIO,
  ERR_ROCE_LIMIT: constants.errno.ENOMEM,
  ERR_ROCE_NOT_FOUND: constants.errno.EINVAL,
  ERR_ROCE_UNSUPPORTED: constants.errno.EOPNOTSUPP,
  ERR_ROCE_MISMATCH: constants.errno.EPROTO,
};

/** The errno that a program gets for a refusal. What is no RoceError is a defect, and thrown on. */
export function errnoOf(error: unknown): number {
  if (!(error instanceof RoceError)) throw error;
  return ERRNO[error.code] ?? constants.errno.EINVAL;
}
