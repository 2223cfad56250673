/** The golden captures of Linux Soft-RoCE as packets to audit, and what it takes to change one of them. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readU16, writeU16 } from '../../../../src/core/bytes.js';
import { CaptureReader } from '../../../../src/port/capture/capture-reader.js';
import type { CapturedPacket } from '../../../../src/port/capture/captured-packet.js';
import { Audit, type AuditOptions, type AuditReport } from '../../src/audit/audit.js';
import { repairIcrc } from '../../src/audit/packet-icrc.js';

const FOLDER = 'test/golden';
const ETHERNET = 14;

export const GOLDEN = readdirSync(FOLDER).filter((name) => name.endsWith('.pcapng'));

export function goldenPath(name: string): string {
  return join(FOLDER, name);
}

export function golden(name: string): CapturedPacket[] {
  const packets = [...new CaptureReader(readFileSync(goldenPath(`${name}.pcapng`)))];
  return packets.map((packet) => ({ ...packet, bytes: Uint8Array.from(packet.bytes) }));
}

export function audited(packets: Iterable<CapturedPacket>, options: AuditOptions = {}): AuditReport {
  const audit = new Audit(options);
  for (const packet of packets) audit.take(packet);
  return audit.report();
}

/** Numbers of the rules that are broken. */
export function broken({ rules }: AuditReport): number[] {
  return rules.filter(({ verdict }) => verdict === 'violation').map(({ rule }) => rule);
}

/** Where things are in an Ethernet frame of the golden captures. */
export class Frame {
  readonly bytes: Uint8Array;
  readonly ip = ETHERNET;
  readonly udp: number;
  readonly bth: number;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.udp = ETHERNET + (bytes[ETHERNET] >> 4 === 4 ? 20 : 40);
    this.bth = this.udp + 8;
  }

  get opcode(): number {
    return this.bytes[this.bth];
  }

  /** The same packet with another payload length; lengths and pad are those of it. */
  resized(payloadBytes: number, headerBytes = 12): Frame {
    const pad = -payloadBytes & 3;
    const end = this.bth + headerBytes + payloadBytes + pad + 4;
    const bytes = new Uint8Array(end);
    bytes.set(this.bytes.subarray(0, Math.min(end, this.bytes.length)));
    const frame = new Frame(bytes);
    bytes[frame.bth + 1] = (bytes[frame.bth + 1] & 0xcf) | (pad << 4);
    writeU16(bytes, frame.udp + 4, end - frame.udp);
    if (bytes[ETHERNET] >> 4 === 4) writeU16(bytes, ETHERNET + 2, end - ETHERNET);
    else writeU16(bytes, ETHERNET + 4, end - ETHERNET - 40);
    return frame;
  }

  /** Writes the right ICRC where the UDP datagram ends, or at `end`. */
  sealed(end = this.udp + readU16(this.bytes, this.udp + 4)): Uint8Array {
    repairIcrc(this.bytes, this, end);
    return this.bytes;
  }
}
