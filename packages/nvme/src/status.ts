/** Status code type and status code as one number, as above the phase bit of a completion. */

import { BlockDeviceError, type BlockErrno } from 'rocev2/internal/disk';

/** Status codes by name: `type << 8 | code` (NVMe base specification 2.0, figures 91 to 95; fabrics: figure 96). */
export const STATUS = {
  SUCCESS: 0x000,
  INVALID_OPCODE: 0x001,
  INVALID_FIELD: 0x002,
  DATA_TRANSFER_ERROR: 0x004,
  INTERNAL_ERROR: 0x006,
  ABORTED: 0x007,
  INVALID_NAMESPACE: 0x00b,
  COMMAND_SEQUENCE_ERROR: 0x00c,
  SGL_LENGTH_INVALID: 0x00f,
  SGL_TYPE_INVALID: 0x011,
  SGL_OFFSET_INVALID: 0x016,
  HOST_ID_FORMAT: 0x018,
  WRITE_PROTECTED: 0x020,
  TRANSIENT_TRANSPORT_ERROR: 0x022,
  LBA_OUT_OF_RANGE: 0x080,
  CAPACITY_EXCEEDED: 0x081,
  NAMESPACE_NOT_READY: 0x082,
  RESERVATION_CONFLICT: 0x083,
  ASYNC_EVENT_LIMIT: 0x105,
  INVALID_LOG_PAGE: 0x109,
  CONNECT_INCOMPATIBLE_FORMAT: 0x180,
  CONNECT_BUSY: 0x181,
  CONNECT_INVALID_PARAMETERS: 0x182,
  /**
   * The controller has the command, but this namespace has not (Linux: NVME_SC_ONCS_NOT_SUPPORTED). Connect has the
   * same number for something else.
   */
  COMMAND_NOT_SUPPORTED: 0x183,
  CONNECT_INVALID_HOST: 0x184,
  AUTHENTICATION_REQUIRED: 0x191,
  WRITE_FAULT: 0x280,
  UNRECOVERED_READ_ERROR: 0x281,
  COMPARE_FAILURE: 0x285,
  ANA_PERSISTENT_LOSS: 0x301,
  ANA_INACCESSIBLE: 0x302,
  ANA_TRANSITION: 0x303,
} as const;

/** Do Not Retry: the same command would fail again. */
export const DNR = 0x4000;

const NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(STATUS).map(([name, status]) => [status, name.toLowerCase().replaceAll('_', ' ')]),
);

export function statusText(status: number): string {
  const code = status & 0x7ff;
  return `${NAMES.get(code) ?? 'unknown status'} (0x${code.toString(16).padStart(3, '0')})`;
}

/** A command that did not succeed: thrown where a target executes one, and to the caller of a host. */
export class NvmeStatusError extends Error {
  /** Always this name, for use where `instanceof` does not work. */
  override readonly name = 'NvmeStatusError';
  /** Always this code. */
  readonly code = 'ERR_NVME_STATUS';
  /** Status code type in bits 10:8, status code in bits 7:0; bit 14 is Do Not Retry. */
  readonly status: number;
  /** Dword 0 of the completion: after Connect the offset of the wrong parameter. */
  readonly result: number;

  constructor(status: number, what?: string, result = 0) {
    super(what === undefined ? statusText(status) : `${what}: ${statusText(status)}`);
    this.status = status;
    this.result = result;
  }
}

export function refuse(status: number, result = 0): NvmeStatusError {
  return new NvmeStatusError(status | DNR, undefined, result);
}

const OF_ERRNO: Readonly<Record<BlockErrno, number>> = {
  EPERM: STATUS.WRITE_PROTECTED,
  EIO: STATUS.INTERNAL_ERROR,
  ENOMEM: STATUS.INTERNAL_ERROR,
  EINVAL: STATUS.INVALID_FIELD,
  ENOSPC: STATUS.CAPACITY_EXCEEDED,
  EOVERFLOW: STATUS.INVALID_FIELD,
  ENOTSUP: STATUS.INVALID_OPCODE,
  ESHUTDOWN: STATUS.NAMESPACE_NOT_READY,
};

export function statusOfDisk(error: BlockDeviceError, medium: number): number {
  return (error.errno === 'EIO' ? medium : OF_ERRNO[error.errno]) | DNR;
}

const ERRNO_OF: ReadonlyMap<number, BlockErrno> = new Map([
  [STATUS.INVALID_OPCODE, 'ENOTSUP'],
  [STATUS.COMMAND_NOT_SUPPORTED, 'ENOTSUP'],
  [STATUS.INVALID_FIELD, 'EINVAL'],
  [STATUS.WRITE_PROTECTED, 'EPERM'],
  [STATUS.RESERVATION_CONFLICT, 'EPERM'],
  [STATUS.LBA_OUT_OF_RANGE, 'EINVAL'],
  [STATUS.CAPACITY_EXCEEDED, 'ENOSPC'],
]);

export function diskErrorOf(error: NvmeStatusError): BlockDeviceError {
  return new BlockDeviceError(ERRNO_OF.get(error.status & 0x7ff) ?? 'EIO', error.message, { cause: error });
}
