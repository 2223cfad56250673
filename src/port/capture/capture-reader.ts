/**
 * Reads a capture in memory: pcapng or classic pcap, by the first four bytes. Damage ends the reading at a known place,
 * with everything before it delivered.
 */

import { RoceError } from '../../core/errors.js';
import type { CaptureDamage, CapturedPacket, CaptureParser } from './captured-packet.js';
import { isPcap, PcapParser } from './pcap-reader.js';
import { BLOCK_SECTION_HEADER } from './pcapng-blocks.js';
import { PcapngParser } from './pcapng-reader.js';

export function parserOf(bytes: Uint8Array): CaptureParser {
  return formatOf(bytes) === 'pcapng' ? new PcapngParser() : new PcapParser();
}

function formatOf(bytes: Uint8Array): 'pcapng' | 'pcap' {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = bytes.length < 4 ? undefined : view.getUint32(0);
  if (magic === BLOCK_SECTION_HEADER) return 'pcapng';
  if (magic !== undefined && isPcap(magic)) return 'pcap';
  throw new RoceError('ERR_ROCE_IO', notACapture(bytes));
}

export class CaptureReader implements Iterable<CapturedPacket> {
  readonly format: 'pcapng' | 'pcap';
  damage: CaptureDamage | undefined;
  readonly #file: Uint8Array;

  constructor(file: Uint8Array) {
    // A Buffer would pass its non-copying slice() on to all users of a packet.
    this.#file = new Uint8Array(file.buffer, file.byteOffset, file.byteLength);
    this.format = formatOf(file);
  }

  *[Symbol.iterator](): Iterator<CapturedPacket> {
    const parser = parserOf(this.#file);
    yield* parser.packets(this.#file, true);
    this.damage = parser.damage;
  }
}

function notACapture(file: Uint8Array): string {
  if (file.length === 0) return 'the file is empty';
  const start = Array.from(file.subarray(0, 4), (byte) => byte.toString(16).padStart(2, '0')).join(' ');
  return `not a pcapng or pcap file: it begins with ${start}`;
}
