import { RoceError } from '../../core/errors.js';
import type { FairClient } from '../../core/fair-queue.js';
import {
  type BlockDevice,
  BlockDeviceError,
  type BlockErrno,
  type BlockExtent,
  EXTENTS_MAX,
} from '../disk/block-device.js';
import type { RateLimit } from '../fair/rate-limit.js';
import type { NbdExport } from './protocol/nbd-export.js';
import { type NbdRequest, refusalOf, type WritePart } from './protocol/nbd-request.js';
import type { NbdAgreement } from './protocol/negotiation.js';
import { blockStatusReply, errorReply, readHeader, readReply, shortReply } from './protocol/reply.js';
import * as wire from './protocol/wire.js';

/** Longer ranges are requested from the disk in parts, so that other requests are served in between. */
const RANGE_BYTES = 1 << 30;
const STATUS_BYTES_MAX = 64 * RANGE_BYTES;
const CACHE_BYTES_MAX = 32 << 20;

/** Reads and writes take turns at the disk; long reads in parts of this size. */
const TURN_BYTES = 256 << 10;
/** Reads up to this size need no turn, so that they wait only for what is at the disk. */
const SHORT_BYTES = 16 << 10;

export interface ServedExport extends NbdExport {
  readonly device: BlockDevice;
  readonly limit?: RateLimit | undefined;
}

/** Whether a request needs a turn at the disk. A WRITE does not hold a place there while its data arrives. */
export function takesTurns({ type, lengthBytes }: NbdRequest): boolean {
  return type === wire.CMD_WRITE || (type === wire.CMD_READ && lengthBytes > SHORT_BYTES);
}

/**
 * Executes a part of a WRITE. Resolves with the reply after the last one, and with nothing before. Rejects only for a
 * defect of this program.
 */
export async function executePart(
  request: NbdRequest,
  { whole, isLast }: WritePart,
  agreement: NbdAgreement<ServedExport>,
  turns: FairClient,
): Promise<readonly Uint8Array[]> {
  const { device } = agreement.export;
  const attempt = async (work: () => Promise<void>) => {
    if (whole.failure !== undefined) return;
    await work().catch((error: Error) => {
      whole.failure ??= error;
    });
  };
  whole.outstanding++;
  whole.isAll ||= isLast;
  await attempt(() => inTurn(turns, request.lengthBytes, () => device.write(request.offset, request.data)));
  if (--whole.outstanding > 0 || !whole.isAll) return [];
  if ((request.flags & wire.CMD_FLAG_FUA) !== 0) await attempt(() => device.flush());
  if (whole.failure === undefined) return [shortReply(request.echo)];
  return failed(request, agreement, whole.failure);
}

/** Rejects only for a defect of this program. */
export async function execute(
  request: NbdRequest,
  agreement: NbdAgreement<ServedExport>,
  allocate: (bytes: number) => Uint8Array,
  turns: FairClient,
): Promise<readonly Uint8Array[]> {
  const refusal = refusalOf(request, agreement);
  if (refusal !== undefined) return failure(request, agreement, refusal, 'the request is invalid here');
  try {
    return await success(request, agreement, allocate, turns);
  } catch (error) {
    return failed(request, agreement, error);
  }
}

/**
 * Executes a valid READ with memory for a part of it, `buffer`: each part leaves before the next is read. `send` gets
 * the pieces of a part, resolves when they have left and the buffer may be used again, and with false if the connection
 * has ended. A reply in one piece reports an error only before its data, so the disk is read once without sending.
 * Resolves with false if a read fails after that: the connection must end. Rejects only for a defect of this program.
 */
export async function readInParts(
  request: NbdRequest,
  agreement: NbdAgreement<ServedExport>,
  buffer: Uint8Array,
  turns: FairClient,
  send: (pieces: readonly Uint8Array[]) => Promise<boolean>,
): Promise<boolean> {
  const { echo, offset, lengthBytes, flags } = request;
  const { export: served, structuredReplies } = agreement;
  const mayPart = structuredReplies && (flags & wire.CMD_FLAG_DF) === 0;
  const read = async (use?: (at: number, part: Uint8Array) => Promise<boolean>): Promise<boolean> => {
    for (let at = 0; at < lengthBytes; at += buffer.length) {
      const part = buffer.subarray(0, Math.min(buffer.length, lengthBytes - at));
      await readInTurns(served.device, offset + at, part, turns);
      if (use !== undefined && !(await use(at, part))) return false;
    }
    return true;
  };
  try {
    if (mayPart) {
      return await read((at, part) => send(readReply(echo, offset + at, part, at + part.length === lengthBytes)));
    }
    await read();
  } catch (error) {
    return send(failed(request, agreement, error));
  }
  const head = structuredReplies ? readHeader(echo, offset, lengthBytes) : shortReply(echo);
  return send([head])
    .then((isOpen) => isOpen && read((_, part) => send([part])))
    .catch(() => false);
}

function failed(request: NbdRequest, agreement: NbdAgreement<ServedExport>, error: unknown): readonly Uint8Array[] {
  if (error instanceof BlockDeviceError) return failure(request, agreement, error.errno, error.message);
  if (error instanceof RoceError) return failure(request, agreement, 'EIO', error.message);
  throw error;
}

async function success(
  request: NbdRequest,
  { export: { device }, structuredReplies }: NbdAgreement<ServedExport>,
  allocate: (bytes: number) => Uint8Array,
  turns: FairClient,
): Promise<readonly Uint8Array[]> {
  const { echo, type, offset, lengthBytes, data, flags } = request;
  const fua = (flags & wire.CMD_FLAG_FUA) !== 0;
  switch (type) {
    case wire.CMD_READ: {
      const into = allocate(lengthBytes);
      if (takesTurns(request)) await readInTurns(device, offset, into, turns);
      else await device.read(offset, lengthBytes, into);
      return structuredReplies ? readReply(echo, offset, into) : [shortReply(echo), into];
    }
    case wire.CMD_WRITE:
      await inTurn(turns, lengthBytes, () => device.write(offset, data, { fua }));
      break;
    case wire.CMD_FLUSH:
      await device.flush();
      break;
    case wire.CMD_TRIM:
      await inParts(offset, lengthBytes, (at, bytes) => device.trim(at, bytes));
      if (fua) await device.flush();
      break;
    case wire.CMD_CACHE:
      await device.prefetch?.(offset, Math.min(lengthBytes, CACHE_BYTES_MAX));
      break;
    case wire.CMD_WRITE_ZEROES:
      await writeZeroes(device, request);
      break;
    case wire.CMD_BLOCK_STATUS: {
      const extents = await allocationOf(device, offset, lengthBytes);
      const isOne = (flags & wire.CMD_FLAG_REQ_ONE) !== 0;
      return [blockStatusReply(echo, isOne ? extents.slice(0, 1) : extents)];
    }
  }
  return [shortReply(echo)];
}

async function inTurn(turns: FairClient, bytes: number, work: () => Promise<void>): Promise<void> {
  const granted = turns.take(bytes);
  if (granted !== undefined) await granted;
  try {
    await work();
  } finally {
    turns.done();
    turns.give(bytes);
  }
}

async function readInTurns(device: BlockDevice, offset: number, into: Uint8Array, turns: FairClient): Promise<void> {
  const parts: Promise<void>[] = [];
  let failure: unknown;
  const read = async (at: number, bytes: number) => {
    try {
      await device.read(offset + at, bytes, into.subarray(at, at + bytes));
    } catch (error) {
      failure ??= error;
    } finally {
      turns.done();
      turns.give(bytes);
    }
  };
  for (let at = 0; at < into.length && failure === undefined; at += TURN_BYTES) {
    const bytes = Math.min(TURN_BYTES, into.length - at);
    const granted = turns.take(bytes);
    if (granted !== undefined) await granted.catch((error: unknown) => (failure ??= error));
    if (failure === undefined) parts.push(read(at, bytes));
  }
  await Promise.all(parts);
  if (failure !== undefined) throw failure;
}

async function writeZeroes(device: BlockDevice, { offset, lengthBytes, flags }: NbdRequest): Promise<void> {
  const fua = (flags & wire.CMD_FLAG_FUA) !== 0;
  const noHole = (flags & wire.CMD_FLAG_NO_HOLE) !== 0;
  const fast = (flags & wire.CMD_FLAG_FAST_ZERO) !== 0;
  // A fast one is never parted: when a later part is refused the earlier ones would have been changed.
  if (fast || lengthBytes <= RANGE_BYTES) {
    await device.writeZeroes(offset, lengthBytes, { fua, noHole, fast });
  } else {
    await inParts(offset, lengthBytes, (at, bytes) => device.writeZeroes(at, bytes, { noHole }));
    if (fua) await device.flush();
  }
}

async function inParts(
  offset: number,
  lengthBytes: number,
  work: (offset: number, lengthBytes: number) => Promise<void>,
): Promise<void> {
  for (let at = 0; at < lengthBytes || at === 0; at += RANGE_BYTES) {
    await work(offset + at, Math.min(RANGE_BYTES, lengthBytes - at));
  }
}

async function allocationOf(device: BlockDevice, offset: number, lengthBytes: number): Promise<readonly BlockExtent[]> {
  if (device.blockStatus === undefined) return [{ lengthBytes, hole: false, zero: false }];
  const extents: Array<{ lengthBytes: number; hole: boolean; zero: boolean }> = [];
  const end = offset + Math.min(lengthBytes, STATUS_BYTES_MAX);
  for (let at = offset; at < end && extents.length <= EXTENTS_MAX; ) {
    const found = await device.blockStatus(at, Math.min(RANGE_BYTES, end - at));
    if (found.length === 0) throw new BlockDeviceError('EIO', 'the disk gives no extents');
    for (const extent of found) {
      at += extent.lengthBytes;
      const last = extents.at(-1);
      if (last?.hole === extent.hole && last.zero === extent.zero) last.lengthBytes += extent.lengthBytes;
      else extents.push({ ...extent });
    }
  }
  return extents;
}

function failure(
  { echo }: NbdRequest,
  { structuredReplies }: NbdAgreement<ServedExport>,
  errno: BlockErrno,
  message: string,
): readonly Uint8Array[] {
  return [structuredReplies ? errorReply(echo, errno, message) : shortReply(echo, errno)];
}
