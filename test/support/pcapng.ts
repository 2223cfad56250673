/**
 * The packets of a pcapng file as dumpcap writes them: section header, Enhanced Packet Blocks, either byte order. Independent of
 * src/port/capture, so that the golden captures do not depend on the code they also test.
 */

import { readFileSync } from 'node:fs';

const SECTION_HEADER = 0x0a0d0d0a;
const ENHANCED_PACKET = 6;

/** The captured bytes of every packet, from the Ethernet header on. */
export function readPackets(path: string | URL): Uint8Array[] {
  const file = readFileSync(path);
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const packets: Uint8Array[] = [];
  let little = true;
  for (let at = 0; at + 12 <= file.length; ) {
    const type = view.getUint32(at, little);
    if (type === SECTION_HEADER) little = view.getUint8(at + 8) === 0x4d;
    if (type === ENHANCED_PACKET) {
      const captured = view.getUint32(at + 20, little);
      packets.push(Uint8Array.from(file.subarray(at + 28, at + 28 + captured)));
    }
    at += view.getUint32(at + 4, little);
  }
  return packets;
}
