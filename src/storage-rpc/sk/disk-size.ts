/** Body of the answer to a PING, 8 bytes, little-endian: the disk's size, so that a client learns that it has grown. */

const SIZE_BYTES = 8;

export function encodeSize(sizeBytes: number): Buffer {
  const out = Buffer.alloc(SIZE_BYTES);
  out.writeBigUInt64LE(BigInt(sizeBytes), 0);
  return out;
}

export function decodeSize(body: Uint8Array): number | undefined {
  if (body.length !== SIZE_BYTES) return undefined;
  const sizeBytes = Number(Buffer.from(body).readBigUInt64LE(0));
  return Number.isSafeInteger(sizeBytes) ? sizeBytes : undefined;
}
