/**
 * Reads a capture file that is in memory: pcapng or classic pcap, told apart by the first four bytes. Meant for files of unknown
 * origin: whatever is damaged ends the reading at a known place, with everything before it delivered.
 */

import { RoceError } from '../../core/errors.js';
import { isPcap, PcapParser } from './pcap-reader.js';
import { BLOCK_SECTION_HEADER } from './pcapng-blocks.js';
import { PcapngParser } from './pcapng-reader.js';

/** One packet of a capture file. */
export interface CapturedPacket {
  /** Nanoseconds since 1970; 0 where the file has no stamp for it. */
  readonly timestampNs: bigint;
  /** Index of the interface in its section; 0 in a classic pcap. */
  readonly interfaceId: number;
  /** What the bytes begin with: LINKTYPE_ numbers of tcpdump.org. */
  readonly linkType: number;
  /** A view into the file. */
  readonly bytes: Uint8Array;
  /** Larger than `bytes.length` when the capture cut the packet off. */
  readonly originalLength: number;
  /** Of the packet's block; undefined without one. */
  readonly comment: string | undefined;
}

/** Why and where reading ended before the end of the file. */
export interface CaptureDamage {
  /** Byte of the file where it cannot be read on. */
  readonly offset: number;
  /** For people. */
  readonly reason: string;
}

/** Reads a format piece by piece. */
export interface CaptureParser {
  /** Bytes of the last piece that were read; the next piece begins behind them. */
  readonly consumed: number;
  /** Why it cannot be read on, with the offset in the last piece; undefined while it can. */
  readonly damage: CaptureDamage | undefined;
  /** The packets of a piece. Unless it is the last, what stands incomplete at its end is left for the next piece. Never throws. */
  packets(bytes: Uint8Array, isLast: boolean): Iterable<CapturedPacket>;
}

/** The parser for a file that begins with these bytes. Throws ERR_ROCE_IO when they are those of no capture format. */
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

/** Iterate it once; afterwards `damage` says whether the file was whole. */
export class CaptureReader implements Iterable<CapturedPacket> {
  /** As the first four bytes say. */
  readonly format: 'pcapng' | 'pcap';
  /** Undefined while reading, and after a whole file. */
  damage: CaptureDamage | undefined;
  readonly #file: Uint8Array;

  /** Throws ERR_ROCE_IO when the first bytes are those of no capture format. */
  constructor(file: Uint8Array) {
    // A Buffer would pass its own slice(), which does not copy, on to everybody who gets a packet.
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
