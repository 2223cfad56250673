/**
 * The pcapng blocks we write (IETF draft-ietf-opsawg-pcapng): section header, interface description with nanosecond stamps,
 * enhanced packet, interface statistics. Little-endian. Every block begins and ends with its length, a multiple of 4.
 */

/** First block of a section: byte order and version. */
export const BLOCK_SECTION_HEADER = 0x0a0d0d0a;
/** Link type, name and resolution of stamps. */
export const BLOCK_INTERFACE_DESCRIPTION = 1;
/** A packet without stamp and interface. */
export const BLOCK_SIMPLE_PACKET = 3;
const BLOCK_INTERFACE_STATISTICS = 5;
/** A packet with stamp, interface and options. */
export const BLOCK_ENHANCED_PACKET = 6;
/** Reads the same in the byte order of the section. */
export const BYTE_ORDER_MAGIC = 0x1a2b3c4d;

/** Ends the options of a block. */
export const OPTION_END = 0;
/** A remark in UTF-8, on any block. */
export const OPTION_COMMENT = 1;
const OPTION_SHB_USER_APPLICATION = 4;
const OPTION_IF_NAME = 2;
/** Resolution of stamps: 10^-n s, or 2^-n s with the top bit set. */
export const OPTION_IF_TSRESOL = 9;
/** Seconds to add to every stamp. */
export const OPTION_IF_TSOFFSET = 14;
const OPTION_ISB_DROPPED = 5;

/** Link types (https://www.tcpdump.org/linktypes.html). */
export const LINKTYPE_ETHERNET = 1;
/** A bare IP packet, of either version. */
export const LINKTYPE_RAW = 101;

const NANOSECOND_RESOLUTION = 9; // stamps count 10^-9 s
/** Type, length, interface, two halves of the stamp, captured and original length; and the length again. */
const ENHANCED_PACKET_FIXED_BYTES = 32;

/** Where packets of a capture were seen. */
export interface CaptureInterface {
  /** Shown in Wireshark's frame header. */
  readonly name: string;
  /** LINKTYPE_ number. */
  readonly linkType: number;
}

const utf8 = new TextEncoder();

/** The first block of a file. */
export function sectionHeaderBlock(application: string): Uint8Array {
  const body = new Uint8Array(16);
  const view = new DataView(body.buffer);
  view.setUint32(0, BYTE_ORDER_MAGIC, true);
  view.setUint16(4, 1, true); // version 1.0
  view.setBigInt64(8, -1n, true); // section length: not known while it is written
  return block(BLOCK_SECTION_HEADER, body, option(OPTION_SHB_USER_APPLICATION, utf8.encode(application)));
}

/** One interface, with stamps in nanoseconds. Interfaces count from 0 in the order of these blocks. */
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

/** Room {@link writeEnhancedPacket} needs. */
export function enhancedPacketBytes(capturedBytes: number, comment: Uint8Array | undefined): number {
  const options = comment === undefined ? 0 : 4 + padded(comment.length) + 4;
  return ENHANCED_PACKET_FIXED_BYTES + padded(capturedBytes) + options;
}

/** What an enhanced packet block says. */
interface EnhancedPacket {
  readonly interfaceId: number;
  /** Nanoseconds since 1970. */
  readonly timestampNs: bigint;
  /** As far as it was captured. */
  readonly packet: Uint8Array;
  /** Length on the wire; default that of `packet`. */
  readonly originalLength?: number;
  /** UTF-8. */
  readonly comment: Uint8Array | undefined;
}

/** Writes an enhanced packet block at `offset` and returns its end. `out` must have {@link enhancedPacketBytes} left. */
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
