/** Protocol data units of NVMe/TCP (NVMe/TCP transport specification 1.0 §3.6): headers, little-endian, and digests. */

import { crc32c } from 'rocev2/internal/core';

export const PDU = {
  IC_REQ: 0x00,
  IC_RESP: 0x01,
  H2C_TERM_REQ: 0x02,
  C2H_TERM_REQ: 0x03,
  CAPSULE_CMD: 0x04,
  CAPSULE_RESP: 0x05,
  H2C_DATA: 0x06,
  C2H_DATA: 0x07,
  R2T: 0x09,
} as const;

export const PDU_FLAG = {
  HEADER_DIGEST: 1,
  DATA_DIGEST: 2,
  LAST: 4,
  SUCCESS: 8,
} as const;

export const FES = {
  INVALID_HEADER: 1,
  SEQUENCE: 2,
  HEADER_DIGEST: 3,
  DATA_OUT_OF_RANGE: 4,
  UNSUPPORTED: 6,
} as const;

export const COMMON_BYTES = 8;
export const DIGEST_BYTES = 4;
export const IC_BYTES = 128;
export const CAPSULE_CMD_BYTES = 72;
export const SHORT_BYTES = 24;

export interface Digests {
  readonly header: boolean;
  readonly data: boolean;
}

export const NO_DIGESTS: Digests = { header: false, data: false };

export interface PduParts {
  readonly type: number;
  readonly flags?: number;
  readonly specific: Uint8Array;
  readonly data?: Uint8Array;
}

export function encodePdu(
  { type, flags = 0, specific, data }: PduParts,
  digests: Digests,
  alignment = 4,
): Uint8Array[] {
  const headerBytes = COMMON_BYTES + specific.length;
  const digestBytes = digests.header ? DIGEST_BYTES : 0;
  const hasData = data !== undefined && data.length > 0;
  const dataAt = hasData ? Math.ceil((headerBytes + digestBytes) / alignment) * alignment : 0;
  const head = Buffer.alloc(hasData ? dataAt : headerBytes + digestBytes);
  const hasDataDigest = hasData && digests.data;
  head[0] = type;
  head[1] = flags | (digests.header ? PDU_FLAG.HEADER_DIGEST : 0) | (hasDataDigest ? PDU_FLAG.DATA_DIGEST : 0);
  head[2] = headerBytes;
  head[3] = dataAt;
  head.writeUInt32LE(head.length + (hasData ? data.length : 0) + (hasDataDigest ? DIGEST_BYTES : 0), 4);
  head.set(specific, COMMON_BYTES);
  if (digests.header) head.writeUInt32LE(crc32c(head.subarray(0, headerBytes)), headerBytes);
  if (!hasData) return [head];
  return hasDataDigest ? [head, data, digestOf(data)] : [head, data];
}

function digestOf(data: Uint8Array): Buffer {
  const digest = Buffer.alloc(DIGEST_BYTES);
  digest.writeUInt32LE(crc32c(data));
  return digest;
}

export interface InitializeConnection {
  readonly version: number;
  /** Alignment of data that this side receives: 4 bytes x (1 + this), 0..31. */
  readonly alignment: number;
  readonly digests: Digests;
  /**
   * Of a host: requests to transfer that one command may have at a time, one less. Of a controller: most bytes of data
   * in a PDU of the host.
   */
  readonly limit: number;
}

export function encodeInitialize({ version, alignment, digests, limit }: InitializeConnection): Buffer {
  const bytes = Buffer.alloc(IC_BYTES - COMMON_BYTES);
  bytes.writeUInt16LE(version, 0);
  bytes[2] = alignment;
  bytes[3] = (digests.header ? 1 : 0) | (digests.data ? 2 : 0);
  bytes.writeUInt32LE(limit, 4);
  return bytes;
}

export function decodeInitialize(header: Buffer): InitializeConnection {
  return {
    version: header.readUInt16LE(8),
    alignment: header[10],
    digests: { header: (header[11] & 1) !== 0, data: (header[11] & 2) !== 0 },
    limit: header.readUInt32LE(12),
  };
}

export interface DataFields {
  readonly id: number;
  readonly tag: number;
  readonly offset: number;
  readonly length: number;
}

export function encodeDataFields({ id, tag, offset, length }: DataFields): Buffer {
  const bytes = Buffer.alloc(SHORT_BYTES - COMMON_BYTES);
  bytes.writeUInt16LE(id, 0);
  bytes.writeUInt16LE(tag, 2);
  bytes.writeUInt32LE(offset, 4);
  bytes.writeUInt32LE(length, 8);
  return bytes;
}

export function decodeDataFields(header: Buffer): DataFields {
  return {
    id: header.readUInt16LE(8),
    tag: header.readUInt16LE(10),
    offset: header.readUInt32LE(12),
    length: header.readUInt32LE(16),
  };
}

export function encodeTermination(type: number, status: number, offending: Uint8Array): Uint8Array[] {
  const specific = Buffer.alloc(SHORT_BYTES - COMMON_BYTES);
  specific.writeUInt16LE(status, 0);
  return encodePdu({ type, specific, data: offending.subarray(0, IC_BYTES) }, NO_DIGESTS);
}
