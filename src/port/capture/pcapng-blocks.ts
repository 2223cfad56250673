/**
 * The pcapng blocks we write (IETF draft-ietf-opsawg-pcapng): section header, interface description with nanosecond
 * stamps, enhanced packet, interface statistics. Little-endian. Every block begins and ends with its length, a multiple
 * of 4.
 */

export const BLOCK_SECTION_HEADER = 0x0a0d0d0a;
export const BLOCK_INTERFACE_DESCRIPTION = 1;
/** Obsolete, written by old tools. */
export const BLOCK_PACKET = 2;
export const BLOCK_SIMPLE_PACKET = 3;
const BLOCK_INTERFACE_STATISTICS = 5;
export const BLOCK_ENHANCED_PACKET = 6;
export const BYTE_ORDER_MAGIC = 0x1a2b3c4d;

export const OPTION_END = 0;
export const OPTION_COMMENT = 1;
const OPTION_SHB_USER_APPLICATION = 4;
const OPTION_IF_NAME = 2;
export const OPTION_IF_TSRESOL = 9;
export const OPTION_IF_TSOFFSET = 14;
const OPTION_ISB_DROPPED = 5;

export const LINKTYPE_ETHERNET = 1;
export const LINKTYPE_RAW = 101;

const NANOSECOND_RESOLUTION = 9; // stamps count 10^-9 s
const ENHANCED_PACKET_FIXED_BYTES = 32;

export interface CaptureInterface {
  readonly name: string;
  readonly linkType: number;
}

const utf8 = new TextEncoder();

export function sectionHeaderBlock(application: string): Uint8Array {
  const body = new Uint8Array(16);
  const view = new DataView(body.buffer);
  view.setUint32(0, BYTE_ORDER_MAGIC, true);
  view.setUint16(4, 1, true); // version 1.0
  view.setBigInt64(8, -1n, true); // section length: not known while it is written
  return block(BLOCK_SECTION_HEADER, body, option(OPTION_SHB_USER_APPLICATION, utf8.encode(application)));
}

/** Interfaces count from 0 in the order of these blocks. */
export function interfaceDescriptionBlock({ name, linkType }: CaptureInterface): Uint8Array {
  const body = new Uint8Array(8); // snap length 0: packets are not cut
  new DataView(body.buffer).setUint16(0, linkType, true);
  return block(
    BLOCK_INTERFACE_DESCRIPTION,
    body,
    option(OPTION_IF_NAME, utf8.encode(name)),
    option(OPTION_IF_TSRESOL, Uint8Array.of(NANOSECOND_RESOLUTION)),
  );
}

/** How many packets the writer itself had to leave out; Wireshark and capinfos show it as drops. */
export function interfaceStatisticsBlock(interfaceId: number, timestampNs: bigint, dropped: number): Uint8Array {
  const body = new Uint8Array(12);
  const view = new DataView(body.buffer);
  view.setUint32(0, interfaceId, true);
  setTimestamp(view, 4, timestampNs);
  const count = new Uint8Array(8);
  new DataView(count.buffer).setBigUint64(0, BigInt(dropped), true);
  return block(BLOCK_INTERFACE_STATISTICS, body, option(OPTION_ISB_DROPPED, count));
}

export function enhancedPacketBytes(capturedBytes: number, comment: Uint8Array | undefined): number {
  const options = comment === undefined ? 0 : 4 + padded(comment.length) + 4;
  return ENHANCED_PACKET_FIXED_BYTES + padded(capturedBytes) + options;
}

interface EnhancedPacket {
  readonly interfaceId: number;
  readonly timestampNs: bigint;
  readonly packet: Uint8Array;
  readonly originalLength?: number;
  readonly comment: Uint8Array | undefined;
}

export function writeEnhancedPacket(
  out: DataView,
  offset: number,
  { interfaceId, timestampNs, packet, originalLength, comment }: EnhancedPacket,
): number {
  const target = new Uint8Array(out.buffer, out.byteOffset, out.byteLength);
  const end = offset + enhancedPacketBytes(packet.length, comment);
  target.fill(0, offset, end); // the buffer is reused: padding must not leak older packets
  out.setUint32(offset, BLOCK_ENHANCED_PACKET, true);
  out.setUint32(offset + 4, end - offset, true);
  out.setUint32(offset + 8, interfaceId, true);
  setTimestamp(out, offset + 12, timestampNs);
  out.setUint32(offset + 20, packet.length, true);
  out.setUint32(offset + 24, originalLength ?? packet.length, true);
  target.set(packet, offset + 28);
  if (comment !== undefined) target.set(option(OPTION_COMMENT, comment), offset + 28 + padded(packet.length));
  out.setUint32(end - 4, end - offset, true);
  return end;
}

function setTimestamp(view: DataView, offset: number, timestampNs: bigint): void {
  view.setUint32(offset, Number((timestampNs >> 32n) & 0xffffffffn), true);
  view.setUint32(offset + 4, Number(timestampNs & 0xffffffffn), true);
}

function option(code: number, value: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(4 + padded(value.length));
  const view = new DataView(bytes.buffer);
  view.setUint16(0, code, true);
  view.setUint16(2, value.length, true);
  bytes.set(value, 4);
  return bytes;
}

function block(type: number, body: Uint8Array, ...options: Uint8Array[]): Uint8Array {
  const endOfOptions = new Uint8Array(4);
  const parts = [body, ...options, endOfOptions];
  const length = 12 + parts.reduce((sum, part) => sum + part.length, 0);
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, type, true);
  view.setUint32(4, length, true);
  let offset = 8;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.length;
  }
  view.setUint32(length - 4, length, true);
  return bytes;
}

/** Data inside a block is filled up to the next multiple of 4. */
export function padded(length: number): number {
  return (length + 3) & ~3;
}
