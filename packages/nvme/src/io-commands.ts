/** Commands of the NVM command set on one namespace (NVM command set specification 1.0 §3). */

import { type BlockDevice, BlockDeviceError } from 'rocev2/internal/disk';
import type { NvmeCommand } from './capsule.js';
import type { CommandData } from './command-data.js';
import type { Namespace } from './namespace.js';
import { IO } from './opcodes.js';
import type { MediumAccess } from './reservations.js';
import { NvmeStatusError, refuse, STATUS, statusOfDisk } from './status.js';

/** Bytes of the largest transfer: MDTS is 2^8 pages of 4 KiB. */
export const TRANSFER_BYTES_MAX = 1 << 20;

const FUA = 0x4000_0000;
const DEALLOCATE = 0x0200_0000;
const ATTRIBUTE_DEALLOCATE = 0x4;
const RANGE_BYTES = 16;
const RANGES_MAX = 256;
const PART_BYTES = 64 * 1024;

const WRITING: ReadonlySet<number> = new Set([IO.WRITE, IO.WRITE_ZEROES, IO.DATASET_MANAGEMENT]);
const READING: ReadonlySet<number> = new Set([IO.READ, IO.COMPARE, IO.VERIFY]);

interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

type Use = (run: (disk: BlockDevice) => Promise<void>) => Promise<void>;

export async function executeIo(command: NvmeCommand, ns: Namespace, hostId: string, data: CommandData): Promise<void> {
  if (ns.readOnly && WRITING.has(command.opcode)) throw refuse(STATUS.WRITE_PROTECTED);
  const access: MediumAccess = READING.has(command.opcode) ? 'read' : 'write';
  ns.reservations.check(hostId, access);
  try {
    await execute(command, ns, data, (run) => ns.use(hostId, access, run));
  } catch (error) {
    if (!(error instanceof BlockDeviceError)) throw error;
    ns.counters.mediaErrors++;
    const medium = WRITING.has(command.opcode) ? STATUS.WRITE_FAULT : STATUS.UNRECOVERED_READ_ERROR;
    throw new NvmeStatusError(statusOfDisk(error, medium), error.message);
  }
}

async function execute(command: NvmeCommand, ns: Namespace, data: CommandData, use: Use): Promise<void> {
  switch (command.opcode) {
    case IO.FLUSH:
      return use((disk) => disk.flush());
    case IO.READ: {
      const { offset, length } = transferRange(command, ns);
      const room = await data.room(length);
      await use((disk) => disk.read(offset, length, room));
      ns.counters.reads++;
      ns.counters.bytesRead += length;
      return;
    }
    case IO.WRITE: {
      const { offset, length } = transferRange(command, ns);
      const bytes = await data.fetch(length);
      await use((disk) => disk.write(offset, bytes, { fua: (command.dword(12) & FUA) !== 0 }));
      ns.counters.writes++;
      ns.counters.bytesWritten += length;
      return;
    }
    case IO.COMPARE: {
      const { offset, length } = transferRange(command, ns);
      const expected = await data.fetch(length);
      return forParts({ offset, length }, use, (stored, at) => {
        const isEqual = Buffer.compare(stored, expected.subarray(at, at + stored.length)) === 0;
        if (!isEqual) throw refuse(STATUS.COMPARE_FAILURE);
      });
    }
    case IO.VERIFY:
      return forParts(rangeOf(command, ns), use, () => {});
    case IO.WRITE_ZEROES: {
      const { offset, length } = rangeOf(command, ns);
      const flags = command.dword(12);
      const options = { fua: (flags & FUA) !== 0, noHole: (flags & DEALLOCATE) === 0 };
      return use((disk) => disk.writeZeroes(offset, length, options));
    }
    case IO.DATASET_MANAGEMENT:
      return manageDataset(command, ns, data, use);
    default:
      throw refuse(STATUS.INVALID_OPCODE);
  }
}

function rangeOf(command: NvmeCommand, ns: Namespace): ByteRange {
  return byteRange(command.lba, (command.dword(12) & 0xffff) + 1, ns);
}

function byteRange(lba: bigint, blocks: number, { lbaShift, blocks: total }: Namespace): ByteRange {
  if (lba + BigInt(blocks) > BigInt(total)) throw refuse(STATUS.LBA_OUT_OF_RANGE);
  return { offset: Number(lba) * 2 ** lbaShift, length: blocks * 2 ** lbaShift };
}

function transferRange(command: NvmeCommand, ns: Namespace): ByteRange {
  const range = rangeOf(command, ns);
  if (range.length > TRANSFER_BYTES_MAX) throw refuse(STATUS.INVALID_FIELD);
  return range;
}

async function forParts(
  { offset, length }: ByteRange,
  use: Use,
  look: (stored: Uint8Array, at: number) => void,
): Promise<void> {
  const scratch = Buffer.allocUnsafe(Math.min(length, PART_BYTES));
  for (let at = 0; at < length; at += PART_BYTES) {
    const part = Math.min(PART_BYTES, length - at);
    await use((disk) => disk.read(offset + at, part, scratch));
    look(scratch.subarray(0, part), at);
  }
}

async function manageDataset(command: NvmeCommand, ns: Namespace, data: CommandData, use: Use): Promise<void> {
  const length = RANGE_BYTES * ((command.dword(10) & 0xff) + 1);
  // Linux always sends room for 256 ranges, however many it uses.
  const given = data.place.length;
  if (given < length || given > RANGE_BYTES * RANGES_MAX) throw refuse(STATUS.SGL_LENGTH_INVALID);
  const bytes = await data.fetch(given);
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, length);
  if ((command.dword(11) & ATTRIBUTE_DEALLOCATE) === 0) return; // The other attributes are hints.
  const ranges: ByteRange[] = [];
  for (let at = 0; at < view.length; at += RANGE_BYTES) {
    const blocks = view.readUInt32LE(at + 4);
    if (blocks > 0) ranges.push(byteRange(view.readBigUInt64LE(at + 8), blocks, ns));
  }
  for (const { offset, length } of ranges) await use((disk) => disk.trim(offset, length));
}
