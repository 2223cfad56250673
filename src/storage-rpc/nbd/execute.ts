/** Does on a disk what a request asks for, and says what to answer. */

import { RoceError } from '../../core/errors.js';
import { type BlockDevice, BlockDeviceError, type BlockErrno, type BlockExtent } from '../disk/block-device.js';
import type { RateLimit } from '../fair/rate-limit.js';
import type { NbdExport } from './protocol/nbd-export.js';
import type { Agreement } from './protocol/negotiation.js';
import { blockStatusReply, errorReply, readReply, simpleReply } from './protocol/reply.js';
import { type NbdRequest, refusalOf } from './protocol/request.js';
import * as wire from './protocol/wire.js';

/** An export with the disk behind it. */
export interface ServedExport extends NbdExport {
  /** Where requests go. */
  readonly device: BlockDevice;
  /** How fast its requests may go. */
  readonly limit?: RateLimit | undefined;
}

/** The pieces of the reply; the data of a READ is the last of them, in memory from `allocate`. Rejects only for what is a defect of this program. */
export async function execute(
  request: NbdRequest,
  agreement: Agreement<ServedExport>,
  allocate: (bytes: number) => Uint8Array,
): Promise<readonly Uint8Array[]> {
  const refusal = refusalOf(request, agreement);
  if (refusal !== undefined) return failure(request, agreement, refusal, 'the request is invalid here');
  try {
    return await success(request, agreement, allocate);
  } catch (error) {
    if (error instanceof BlockDeviceError) return failure(request, agreement, error.errno, error.message);
    if (error instanceof RoceError) return failure(request, agreement, 'EIO', error.message);
    throw error;
  }
}

async function success(
  request: NbdRequest,
  { export: { device }, structuredReplies }: Agreement<ServedExport>,
  allocate: (bytes: number) => Uint8Array,
): Promise<readonly Uint8Array[]> {
  const { cookie, type, offset, lengthBytes, data, flags } = request;
  const fua = (flags & wire.CMD_FLAG_FUA) !== 0;
  switch (type) {
    case wire.CMD_READ: {
      const into = allocate(lengthBytes);
      await device.read(offset, lengthBytes, into);
      return structuredReplies ? readReply(cookie, offset, into) : [simpleReply(cookie), into];
    }
    case wire.CMD_WRITE:
      await device.write(offset, data, { fua });
      break;
    case wire.CMD_FLUSH:
      await device.flush();
      break;
    case wire.CMD_TRIM:
      await device.trim(offset, lengthBytes);
      if (fua) await device.flush();
      break;
    case wire.CMD_WRITE_ZEROES:
      await device.writeZeroes(offset, lengthBytes, { fua, noHole: (flags & wire.CMD_FLAG_NO_HOLE) !== 0 });
      break;
    case wire.CMD_BLOCK_STATUS: {
      const extents = await allocationOf(device, offset, lengthBytes);
      const isOne = (flags & wire.CMD_FLAG_REQ_ONE) !== 0;
      return [blockStatusReply(cookie, isOne ? extents.slice(0, 1) : extents)];
    }
  }
  return [simpleReply(cookie)];
}

async function allocationOf(device: BlockDevice, offset: number, lengthBytes: number): Promise<readonly BlockExtent[]> {
  return (await device.blockStatus?.(offset, lengthBytes)) ?? [{ lengthBytes, hole: false, zero: false }];
}

function failure(
  { cookie }: NbdRequest,
  { structuredReplies }: Agreement<ServedExport>,
  errno: BlockErrno,
  message: string,
): readonly Uint8Array[] {
  return [structuredReplies ? errorReply(cookie, errno, message) : simpleReply(cookie, errno)];
}
