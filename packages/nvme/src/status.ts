/** Status of NVMe commands: status code type and status code as one number, as they stand in a completion above its phase bit. */

import { BlockDeviceError, type BlockErrno } from 'rocev2/internal/disk';

/** Status codes by name: `type << 8 | code` (NVMe base specification 2.0, figures 91 to 95; fabrics: figure 96). */
export const STATUS = {
  /** The command did what it says. */
  SUCCESS: 0x000,
  /** The controller does not have the command. */
  INVALID_OPCODE: 0x001,
  /** A field of the command is wrong. */
  INVALID_FIELD: 0x002,
  /** Data could not be moved. */
  DATA_TRANSFER_ERROR: 0x004,
  /** The controller has failed. */
  INTERNAL_ERROR: 0x006,
  /** An Abort command ended it. */
  ABORTED: 0x007,
  /** There is no such namespace. */
  INVALID_NAMESPACE: 0x00b,
  /** The command is not possible now. */
  COMMAND_SEQUENCE_ERROR: 0x00c,
  /** The SGL is not as long as the data of the command. */
  SGL_LENGTH_INVALID: 0x00f,
  /** The SGL is of a kind that this transport does not have. */
  SGL_TYPE_INVALID: 0x011,
  /** In-capsule data reaches beyond the capsule. */
  SGL_OFFSET_INVALID: 0x016,
  /** The host ID is not of the length that the controller has. */
  HOST_ID_FORMAT: 0x018,
  /** The namespace is read-only. */
  WRITE_PROTECTED: 0x020,
  /** The transport damaged the data; another try may succeed. */
  TRANSIENT_TRANSPORT_ERROR: 0x022,
  /** Blocks beyond the end of the namespace. */
  LBA_OUT_OF_RANGE: 0x080,
  /** The store is full. */
  CAPACITY_EXCEEDED: 0x081,
  /** The namespace is going away, or not there yet. */
  NAMESPACE_NOT_READY: 0x082,
  /** Another host holds a reservation. */
  RESERVATION_CONFLICT: 0x083,
  /** More Asynchronous Event Requests than the controller takes. */
  ASYNC_EVENT_LIMIT: 0x105,
  /** There is no such log page. */
  INVALID_LOG_PAGE: 0x109,
  /** Connect: the format of its data is unknown. */
  CONNECT_INCOMPATIBLE_FORMAT: 0x180,
  /** Connect: the controller, or this queue of it, is in use. */
  CONNECT_BUSY: 0x181,
  /** Connect: a parameter is wrong; the result says which. */
  CONNECT_INVALID_PARAMETERS: 0x182,
  /** The controller has the command, but this namespace has not (Linux: NVME_SC_ONCS_NOT_SUPPORTED). Connect has the same number for something else. */
  COMMAND_NOT_SUPPORTED: 0x183,
  /** Connect: the host may not use the subsystem. */
  CONNECT_INVALID_HOST: 0x184,
  /** The host has not authenticated itself on this queue. */
  AUTHENTICATION_REQUIRED: 0x191,
  /** The medium did not take the data. */
  WRITE_FAULT: 0x280,
  /** The medium did not give the data. */
  UNRECOVERED_READ_ERROR: 0x281,
  /** Compare: the data differ. */
  COMPARE_FAILURE: 0x285,
  /** The port has lost its way to the namespace for good. */
  ANA_PERSISTENT_LOSS: 0x301,
  /** The port cannot reach the namespace now. */
  ANA_INACCESSIBLE: 0x302,
  /** The port is between two states. */
  ANA_TRANSITION: 0x303,
} as const;

/** Do Not Retry: the same command would fail again. It stands above type and code. */
export const DNR = 0x4000;

const NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(STATUS).map(([name, status]) => [status, name.toLowerCase().replaceAll('_', ' ')]),
);

/** A status in words, with type and code in hex. */
export function statusText(status: number): string {
  const code = status & 0x7ff;
  return `${NAMES.get(code) ?? 'unknown status'} (0x${code.toString(16).padStart(3, '0')})`;
}

/** A command that did not succeed: thrown where a target executes one, and to the caller of a host. */
export class NvmeStatusError extends Error {
  /** Always this name, for use where `instanceof` does not work. */
  override readonly name = 'NvmeStatusError';
  /** Status code type in bits 10:8, status code in bits 7:0; bit 14 is Do Not Retry. */
  readonly status: number;
  /** Dword 0 of the completion: after Connect the place of the wrong parameter. */
  readonly result: number;

  constructor(status: number, what?: string, result = 0) {
    super(what === undefined ? statusText(status) : `${what}: ${statusText(status)}`);
    this.status = status;
    this.result = result;
  }
}

/** A failure that is the same at the next try. */
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

/** The status of a command whose disk failed; `medium` is that of its kind for EIO. */
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

/** The error of a disk whose command failed. */
export function diskErrorOf(error: NvmeStatusError): BlockDeviceError {
  return new BlockDeviceError(ERRNO_OF.get(error.status & 0x7ff) ?? 'EIO', error.message, { cause: error });
}
