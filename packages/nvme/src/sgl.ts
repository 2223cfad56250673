/**
 * The one SGL descriptor of a command over fabrics (NVMe base specification 2.0 §4.4; keyed: NVMe over RDMA; transport:
 * NVMe over TCP).
 */

import { FLAG_SGL, type NvmeCommand } from './capsule.js';
import { refuse, STATUS } from './status.js';

const SGL_AT = 24;
const TYPE_AT = SGL_AT + 15;

const TYPE_IN_CAPSULE = 0x01;
const TYPE_KEYED = 0x40;
const TYPE_KEYED_INVALIDATE = 0x4f;
const TYPE_TRANSPORT = 0x5a;

export type ExternalSgl = 'keyed' | 'transport';

export type DataPlace =
  | {
      readonly kind: 'none';
      readonly length: 0;
    }
  | {
      readonly kind: 'capsule';
      readonly offset: number;
      /** Bytes of data. */
      readonly length: number;
    }
  | {
      readonly kind: 'keyed';
      readonly addr: bigint;
      /** Bytes of data. */
      readonly length: number;
      readonly rkey: number;
      readonly invalidate: boolean;
    }
  | {
      readonly kind: 'transport';
      /** Bytes of data. */
      readonly length: number;
    };

export const NO_DATA: DataPlace = { kind: 'none', length: 0 };

export function readSgl({ bytes }: NvmeCommand, external: ExternalSgl, capsuleBytes: number): DataPlace {
  const type = bytes[TYPE_AT];
  if (type === TYPE_IN_CAPSULE) {
    const length = bytes.readUInt32LE(SGL_AT + 8);
    const offset = bytes.readBigUInt64LE(SGL_AT);
    if (length === 0) return NO_DATA;
    if (offset + BigInt(length) > BigInt(capsuleBytes)) throw refuse(STATUS.SGL_OFFSET_INVALID);
    return { kind: 'capsule', offset: Number(offset), length };
  }
  if (external === 'keyed' && type >>> 4 === TYPE_KEYED >>> 4) {
    if (type !== TYPE_KEYED && type !== TYPE_KEYED_INVALIDATE) throw refuse(STATUS.INVALID_FIELD);
    const length = bytes.readUIntLE(SGL_AT + 8, 3);
    if (length === 0) return NO_DATA;
    return {
      kind: 'keyed',
      addr: bytes.readBigUInt64LE(SGL_AT),
      length,
      rkey: bytes.readUInt32LE(SGL_AT + 11),
      invalidate: type === TYPE_KEYED_INVALIDATE,
    };
  }
  if (external === 'transport' && type >>> 4 === TYPE_TRANSPORT >>> 4) {
    if (type !== TYPE_TRANSPORT) throw refuse(STATUS.INVALID_FIELD);
    const length = bytes.readUInt32LE(SGL_AT + 8);
    return length === 0 ? NO_DATA : { kind: 'transport', length };
  }
  throw refuse(STATUS.SGL_TYPE_INVALID);
}

export function writeSgl(sqe: Buffer, place: DataPlace, external: ExternalSgl): void {
  sqe[1] |= FLAG_SGL;
  sqe.fill(0, SGL_AT, SGL_AT + 16);
  switch (place.kind) {
    case 'none':
      sqe[TYPE_AT] = external === 'keyed' ? TYPE_KEYED : TYPE_TRANSPORT;
      break;
    case 'capsule':
      sqe.writeBigUInt64LE(BigInt(place.offset), SGL_AT);
      sqe.writeUInt32LE(place.length, SGL_AT + 8);
      sqe[TYPE_AT] = TYPE_IN_CAPSULE;
      break;
    case 'keyed':
      sqe.writeBigUInt64LE(place.addr, SGL_AT);
      sqe.writeUIntLE(place.length, SGL_AT + 8, 3);
      sqe.writeUInt32LE(place.rkey, SGL_AT + 11);
      sqe[TYPE_AT] = place.invalidate ? TYPE_KEYED_INVALIDATE : TYPE_KEYED;
      break;
    case 'transport':
      sqe.writeUInt32LE(place.length, SGL_AT + 8);
      sqe[TYPE_AT] = TYPE_TRANSPORT;
      break;
  }
}
