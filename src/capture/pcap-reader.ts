/**
 * Classic pcap (draft-ietf-opsawg-pcap): a 24-byte header, then records. Four magic numbers: two byte orders, stamps in
 * microseconds or nanoseconds.
 */

import type { CaptureDamage, CapturedPacket } from './capture-reader.js';

const MICROSECONDS_BIG = 0xa1b2c3d4;
const NANOSECONDS_BIG = 0xa1b23c4d;
const MICROSECONDS_LITTLE = 0xd4c3b2a1;
const NANOSECONDS_LITTLE = 0x4d3cb2a1;

const FILE_HEADER_BYTES = 24;
const RECORD_HEADER_BYTES = 16;
/** The upper bits of the link type field hold the length of a frame check sequence. */
const LINK_TYPE_MASK = 0xffff;

/** `magic`: the first four bytes of the file, read big-endian. */
export function isPcap(magic: number): boolean {
  return [MICROSECONDS_BIG, NANOSECONDS_BIG, MICROSECONDS_LITTLE, NANOSECONDS_LITTLE].includes(magic);
}

/** Returns the damage that ended the reading, or undefined at a clean end of file. Never throws. */
export function* readPcap(file: Uint8Array): Generator<CapturedPacket, CaptureDamage | undefined> {
  if (file.length < FILE_HEADER_BYTES) return { offset: 0, reason: 'the file ends inside the pcap header' };
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const magic = view.getUint32(0);
  const littleEndian = magic === MICROSECONDS_LITTLE || magic === NANOSECONDS_LITTLE;
  const nsPerTick = magic === NANOSECONDS_BIG || magic === NANOSECONDS_LITTLE ? 1n : 1000n;
  const linkType = view.getUint32(20, littleEndian) & LINK_TYPE_MASK;
  let offset = FILE_HEADER_BYTES;
  while (offset < file.length) {
    if (file.length - offset < RECORD_HEADER_BYTES) {
      return { offset, reason: 'the file ends inside a record header' };
    }
    const seconds = BigInt(view.getUint32(offset, littleEndian));
    const ticks = BigInt(view.getUint32(offset + 4, littleEndian));
    const captured = view.getUint32(offset + 8, littleEndian);
    const originalLength = view.getUint32(offset + 12, littleEndian);
    const start = offset + RECORD_HEADER_BYTES;
    if (captured > file.length - start) return { offset, reason: 'the file ends inside a packet' };
    yield {
      timestampNs: seconds * 1_000_000_000n + ticks * nsPerTick,
      interfaceId: 0,
      linkType,
      bytes: file.subarray(start, start + captured),
      originalLength,
      comment: undefined,
    };
    offset = start + captured;
  }
  return undefined;
}
