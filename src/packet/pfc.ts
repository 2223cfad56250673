/**
 * Priority-based flow control frames (IEEE 802.1Q clause 36, MAC control of IEEE 802.3 annex 31D): a station requests
 * its neighbour to pause some of the eight priorities for a time, or to continue.
 *
 *   destination 01-80-C2-00-00-01 | source | 0x8808 | opcode 0x0101 | class enable vector | 8 pause times | zeroes to
 *   60 bytes
 *
 * A pause time counts quanta of 512 bit times of the link; 0 lets the priority continue. Only priorities whose bit is
 * set are affected.
 */

import { readU16, writeU16 } from '../core/bytes.js';
import {
  ETHERNET_BYTES,
  ETHERNET_FRAME_BYTES_MIN,
  ETHERTYPE_MAC_CONTROL,
  MAC_BYTES,
  writeEthernet,
} from './ethernet.js';

export const PRIORITIES = 8;
export const PFC_FRAME_BYTES = ETHERNET_FRAME_BYTES_MIN;
/** The longest pause: 65535 times 512 bit times. */
export const PFC_QUANTA_MAX = 0xffff;

const OPCODE_PFC = 0x0101;
const QUANTUM_BITS = 512;
const MAC_CONTROL_GROUP: Uint8Array = Uint8Array.of(0x01, 0x80, 0xc2, 0x00, 0x00, 0x01);
const PFC_BYTES = 2 + 2 + 2 * PRIORITIES;

export class PfcFrame {
  /** Bit i: `quanta[i]` applies. */
  enabled = 0;
  /** By priority: length of the pause in quanta of 512 bit times; 0 lets it continue. */
  readonly quanta: Uint16Array = new Uint16Array(PRIORITIES);
}

export function writePfc(b: Uint8Array, o: number, source: Uint8Array, frame: PfcFrame): number {
  const end = o + PFC_FRAME_BYTES;
  let at = writeEthernet(b, o, MAC_CONTROL_GROUP, source, ETHERTYPE_MAC_CONTROL);
  writeU16(b, at, OPCODE_PFC);
  writeU16(b, at + 2, frame.enabled);
  at += 4;
  for (let priority = 0; priority < PRIORITIES; priority++, at += 2) {
    writeU16(b, at, (frame.enabled & (1 << priority)) === 0 ? 0 : frame.quanta[priority]);
  }
  b.fill(0, at, end);
  return end;
}

/**
 * False for anything that is not exactly a PFC frame: another destination, ethertype or opcode, reserved bits in the
 * vector, too few bytes; `out` is then meaningless. Padding is ignored.
 */
export function parsePfc(bytes: Uint8Array, offset: number, length: number, out: PfcFrame): boolean {
  if (length < ETHERNET_BYTES + PFC_BYTES) return false;
  for (let i = 0; i < MAC_BYTES; i++) if (bytes[offset + i] !== MAC_CONTROL_GROUP[i]) return false;
  if (readU16(bytes, offset + 12) !== ETHERTYPE_MAC_CONTROL) return false;
  let at = offset + ETHERNET_BYTES;
  if (readU16(bytes, at) !== OPCODE_PFC || bytes[at + 2] !== 0) return false;
  out.enabled = bytes[at + 3];
  at += 4;
  for (let priority = 0; priority < PRIORITIES; priority++, at += 2) out.quanta[priority] = readU16(bytes, at);
  return true;
}

export function pauseNs(quanta: number, rateBps: number): number {
  return (quanta * QUANTUM_BITS * 1e9) / rateBps;
}
