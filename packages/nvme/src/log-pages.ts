/** Log pages of a controller (NVMe base specification 2.0 §5.16.1), whole; Get Log Page takes the requested part. */

import type { Namespace } from './namespace.js';
import { ADMIN, IO } from './opcodes.js';
import type { ReservationNotice } from './reservations.js';

const SMART_BYTES = 512;
const FIRMWARE_BYTES = 512;
const EFFECTS_BYTES = 4096;
/** SMART counts thousands of 512 bytes. */
const DATA_UNIT_BYTES = 512_000;
/** 300 K. A store in software has no temperature, and 0 would be a warning. */
const TEMPERATURE_K = 300;

const SUPPORTED = 1;
const CHANGES_BLOCKS = 2;

export function errorLog(): Buffer {
  return Buffer.alloc(64);
}

export function smartLog(namespaces: readonly Namespace[]): Buffer {
  const bytes = Buffer.alloc(SMART_BYTES);
  const sum = (count: (counters: Namespace['counters']) => number) =>
    BigInt(namespaces.reduce((total, { counters }) => total + count(counters), 0));
  const units = (total: bigint) => (total + BigInt(DATA_UNIT_BYTES - 1)) / BigInt(DATA_UNIT_BYTES);
  bytes.writeUInt16LE(TEMPERATURE_K, 1);
  bytes[3] = 100;
  bytes[4] = 10;
  bytes.writeBigUInt64LE(units(sum(({ bytesRead }) => bytesRead)), 32);
  bytes.writeBigUInt64LE(units(sum(({ bytesWritten }) => bytesWritten)), 48);
  bytes.writeBigUInt64LE(
    sum(({ reads }) => reads),
    64,
  );
  bytes.writeBigUInt64LE(
    sum(({ writes }) => writes),
    80,
  );
  bytes.writeBigUInt64LE(
    sum(({ mediaErrors }) => mediaErrors),
    160,
  );
  return bytes;
}

export function firmwareLog(firmware: string): Buffer {
  const bytes = Buffer.alloc(FIRMWARE_BYTES);
  bytes[0] = 1;
  bytes.write(firmware.padEnd(8).slice(0, 8), 8, 'latin1');
  return bytes;
}

export function effectsLog(): Buffer {
  const bytes = Buffer.alloc(EFFECTS_BYTES);
  for (const opcode of Object.values(ADMIN)) bytes.writeUInt32LE(SUPPORTED, 4 * opcode);
  const changing: readonly number[] = [IO.WRITE, IO.WRITE_ZEROES, IO.DATASET_MANAGEMENT];
  for (const opcode of Object.values(IO)) {
    bytes.writeUInt32LE(changing.includes(opcode) ? SUPPORTED | CHANGES_BLOCKS : SUPPORTED, 1024 + 4 * opcode);
  }
  return bytes;
}

export function changedNamespacesLog(changed: ReadonlySet<number>): Buffer {
  const bytes = Buffer.alloc(4096);
  [...changed]
    .sort((a, b) => a - b)
    .slice(0, 1024)
    .forEach((nsid, i) => {
      bytes.writeUInt32LE(nsid, 4 * i);
    });
  return bytes;
}

export interface ReservationEvent {
  /** Which of a controller's notifications it is, from 1 on. */
  readonly count: number;
  readonly notice: ReservationNotice;
  readonly nsid: number;
  readonly more: number;
}

export function reservationLog(event: ReservationEvent | undefined): Buffer {
  const bytes = Buffer.alloc(64);
  if (event === undefined) return bytes;
  bytes.writeBigUInt64LE(BigInt(event.count), 0);
  bytes[8] = event.notice;
  bytes[9] = Math.min(event.more, 255);
  bytes.writeUInt32LE(event.nsid, 12);
  return bytes;
}
