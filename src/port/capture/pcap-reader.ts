/**
 * Classic pcap (draft-ietf-opsawg-pcap): a 24-byte header, then records. Four magic numbers: two byte orders, stamps in
 * microseconds or nanoseconds.
 */

import type { CaptureDamage, CapturedPacket, CaptureParser } from './captured-packet.js';

const MICROSECONDS_BIG = 0xa1b2c3d4;
const NANOSECONDS_BIG = 0xa1b23c4d;
const MICROSECONDS_LITTLE = 0xd4c3b2a1;
const NANOSECONDS_LITTLE = 0x4d3cb2a1;

const FILE_HEADER_BYTES = 24;
const RECORD_HEADER_BYTES = 16;
/** The upper bits of the link type field hold the length of a frame check sequence. */
const LINK_TYPE_MASK = 0xffff;

export function isPcap(magic: number): boolean {
  return [MICROSECONDS_BIG, NANOSECONDS_BIG, MICROSECONDS_LITTLE, NANOSECONDS_LITTLE].includes(magic);
}

export class PcapParser implements CaptureParser {
  consumed = 0;
  damage: CaptureDamage | undefined;
  #header: { readonly littleEndian: boolean; readonly nsPerTick: bigint; readonly linkType: number } | undefined;

  *packets(file: Uint8Array, isLast: boolean): Generator<CapturedPacket, void> {
    const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
    let offset = 0;
    this.consumed = 0;
    if (this.#header === undefined) {
      if (file.length < FILE_HEADER_BYTES) {
        if (isLast) this.damage = { offset: 0, reason: 'the file ends inside the pcap header' };
        return;
      }
      const magic = view.getUint32(0);
      const littleEndian = magic === MICROSECONDS_LITTLE || magic === NANOSECONDS_LITTLE;
      const nsPerTick = magic === NANOSECONDS_BIG || magic === NANOSECONDS_LITTLE ? 1n : 1000n;
      this.#header = { littleEndian, nsPerTick, linkType: view.getUint32(20, littleEndian) & LINK_TYPE_MASK };
      offset = FILE_HEADER_BYTES;
    }
    const { littleEndian, nsPerTick, linkType } = this.#header;
    while (offset < file.length) {
      this.consumed = offset;
      const start = offset + RECORD_HEADER_BYTES;
      const captured = start > file.length ? 0 : view.getUint32(offset + 8, littleEndian);
      if (start + captured > file.length) {
        const part = start > file.length ? 'a record header' : 'a packet';
        if (isLast) this.damage = { offset, reason: `the file ends inside ${part}` };
        return;
      }
      const seconds = BigInt(view.getUint32(offset, littleEndian));
      const ticks = BigInt(view.getUint32(offset + 4, littleEndian));
      yield {
        timestampNs: seconds * 1_000_000_000n + ticks * nsPerTick,
        interfaceId: 0,
        linkType,
        bytes: file.subarray(start, start + captured),
        originalLength: view.getUint32(offset + 12, littleEndian),
        comment: undefined,
      };
      offset = start + captured;
    }
    this.consumed = offset;
  }
}
