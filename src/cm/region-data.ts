/**
 * An opened memory region as CM private data, so that `listen` and `connect` can tell it without TCP: 4 bytes of
 * signature, then address (8), rkey (4) and length (8), big-endian.
 */

import type { RemoteRegion } from './exchange.js';

const SIGNATURE = Buffer.from('rv2m');
const BYTES = 24;

export function encodeRegion(region: RemoteRegion | undefined): Uint8Array {
  if (region === undefined) return new Uint8Array(0);
  const data = Buffer.alloc(BYTES);
  SIGNATURE.copy(data);
  data.writeBigUInt64BE(region.addr, 4);
  data.writeUInt32BE(region.rkey, 12);
  data.writeBigUInt64BE(BigInt(region.length), 16);
  return data;
}

export function decodeRegion(privateData: Uint8Array): RemoteRegion | undefined {
  const data = Buffer.from(privateData.buffer, privateData.byteOffset, privateData.length);
  if (data.length < BYTES || !data.subarray(0, 4).equals(SIGNATURE)) return undefined;
  return { addr: data.readBigUInt64BE(4), rkey: data.readUInt32BE(12), length: Number(data.readBigUInt64BE(16)) };
}
