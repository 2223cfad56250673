/**
 * The interface of disks. Any number of requests may be in flight and complete in any order; overlapping ones take
 * effect one after another, in unspecified order. Errors are {@link BlockDeviceError}s with NBD numbers (proto.md,
 * "Error values").
 */

import { shown } from '../../core/arguments.js';
import type { DiskIdentity } from './disk-identity.js';
import type { LeaseStore } from './lease-store.js';

/** Errors of disks, with their numbers in the NBD protocol. */
export const BLOCK_ERRNOS = {
  /** The disk cannot be written. */
  EPERM: 1,
  /** The store failed, or its data is damaged. */
  EIO: 5,
  /** No memory for the request at present. */
  ENOMEM: 12,
  /** The request is invalid, or reads past the end. */
  EINVAL: 22,
  /** The request writes past the end, or the store is full. */
  ENOSPC: 28,
  /** The request is too large. */
  EOVERFLOW: 75,
  /** The disk does not support the request. */
  ENOTSUP: 95,
  /** The disk is closed or closing. */
  ESHUTDOWN: 108,
} as const;

/** Name of an error, such as `EIO`; see {@link BLOCK_ERRNOS}. */
export type BlockErrno = keyof typeof BLOCK_ERRNOS;

/** Why a disk refused or failed a request. */
export class BlockDeviceError extends Error {
  /** Always this name, for use where `instanceof` does not work. */
  override readonly name = 'BlockDeviceError';
  /** Name of the error. */
  readonly errno: BlockErrno;

  constructor(
    /** Name of the error. */
    errno: BlockErrno,
    message: string,
    options?: ErrorOptions,
  ) {
    super(`${errno}: ${message}`, options);
    this.errno = errno;
  }
}

/**
 * Another owner may have the disk now and serve it elsewhere. For callers that cannot locate it, this is an EIO. The
 * outcome of the request is unknown.
 */
export class NotOwnerError extends BlockDeviceError {
  constructor(message: string, options?: ErrorOptions) {
    super('EIO', message, options);
  }
}

export const CHECKED_BLOCK_BYTES = 4096;

/** Checked blocks of a disk; the last of them may reach past its end, where it is zero. */
export function checkedBlocks(sizeBytes: number): number {
  return Math.ceil(sizeBytes / CHECKED_BLOCK_BYTES);
}

interface DurabilityOptions {
  /** Force unit access: the data is durable when the promise resolves. */
  readonly fua?: boolean | undefined;
}

/** How a write is to be executed. All fields are optional. */
export interface WriteOptions extends DurabilityOptions {
  /**
   * Correct CRC-32C of each of the checked blocks in `data`; a disk that stores checksums need not compute them again.
   */
  readonly crcs?: Uint32Array | undefined;
}

/** Options of writing zeros. */
export interface WriteZeroesOptions extends DurabilityOptions {
  /** Keeps the space of the range, so that a later write to it does not fail for lack of space. */
  readonly noHole?: boolean | undefined;
  /**
   * Rejects with ENOTSUP, at once and without a change, unless this is known to be faster than writing that many zeros.
   */
  readonly fast?: boolean | undefined;
}

export const EXTENTS_MAX = 4096;

/** A range of the disk of one kind. */
export interface BlockExtent {
  /** Bytes of the run, at least 1. */
  readonly lengthBytes: number;
  /** The store need not keep space for it: backup tools can leave it out. */
  readonly hole: boolean;
  /** Known to read as zeros. */
  readonly zero: boolean;
}

/** A disk. Offsets and lengths are bytes below 2^53; data of a request is at the start of its buffer. */
export interface BlockDevice extends AsyncDisposable {
  /** Identifies this disk for clients that reconnect. Absent: only its size does. */
  readonly identity?: DiskIdentity | undefined;
  /**
   * Makes the {@link identity} differ from that of older copies, if the disk was written since the last call. A storage
   * server calls it about once a second. Absent: the store cannot.
   */
  checkpoint?(): Promise<void>;
  /** Why every request fails now: another owner may have the disk. Absent or undefined: it is owned here. */
  readonly notOwner?: NotOwnerError | undefined;
  /**
   * Write verifier, 64 bits: while it stays the same, the store has all acknowledged data, flushed or not. Absent: this
   * holds only as long as this object exists.
   */
  readonly writeVerifier?: bigint | undefined;
  /** Stores who may write to it. Absent: a restarted server does not know. @internal */
  readonly leaseStore?: LeaseStore | undefined;
  /** Whether everything that would change it fails with EPERM. Absent: no. */
  readonly readOnly?: boolean | undefined;
  /** A multiple of {@link blockBytes}; may grow, never shrinks. */
  readonly sizeBytes: number;
  /** Offsets and lengths are multiples of it. A power of two; 1: no restriction. */
  readonly blockBytes: number;

  /** Reads `length` bytes at `offset` into the start of `into`. Unwritten ranges read as zeros. EINVAL past the end. */
  read(offset: number, length: number, into: Uint8Array): Promise<void>;

  /**
   * The same for whole blocks of a disk that stores CRC-32C. Resolves to the checksums, against which the bytes were
   * checked.
   */
  readChecked?(offset: number, length: number, into: Uint8Array): Promise<Uint32Array>;

  /** Writes all of `data` at `offset`. `data` must not change until the promise settles. ENOSPC past the end. */
  write(offset: number, data: Uint8Array, options?: WriteOptions): Promise<void>;

  /** Makes all completed writes durable: every write that had resolved before the call. */
  flush(): Promise<void>;

  /** Marks the range as unused. Until it is written again it reads as zeros or as before. EINVAL past the end. */
  trim(offset: number, length: number): Promise<void>;

  /** Fills the range with zeros. ENOSPC past the end. */
  writeZeroes(offset: number, length: number, options?: WriteZeroesOptions): Promise<void>;

  /**
   * Updates {@link sizeBytes} where it is maintained elsewhere; resolves when it is current, or cannot be learned now.
   * Absent: it is always current.
   */
  refresh?(): Promise<void>;

  /**
   * Prefetches the range, as far as the disk can; a hint without guarantees. EINVAL past the end. Absent: the disk
   * cannot prefetch.
   */
  prefetch?(offset: number, length: number): Promise<void>;

  /**
   * Runs from `offset` on that together cover `[offset, offset + length)`, or the beginning of it in at least 4096
   * runs; neighbours of different kind. Absent: everything is data.
   */
  blockStatus?(offset: number, length: number): Promise<readonly BlockExtent[]>;

  /**
   * The same disk for one of several clients: when data that was not flushed is lost, the next flush of every view
   * fails. Its `close` leaves the disk open. Absent: a failed flush fails for all clients, or no data can be lost.
   */
  view?(): BlockDevice;

  /**
   * Waits for requests in flight, makes everything durable and releases the store. Later requests fail with ESHUTDOWN.
   */
  close(): Promise<void>;
}

export function isWholeBlocks(offset: number, length: number): boolean {
  return length === 0 || (offset % CHECKED_BLOCK_BYTES === 0 && length % CHECKED_BLOCK_BYTES === 0);
}

/** `memory`: where the bytes go to or come from, if the request has data. */
export function checkRange(
  device: { readonly sizeBytes: number; readonly blockBytes: number },
  offset: number,
  length: number,
  errno: 'EINVAL' | 'ENOSPC',
  ...memory: readonly [Uint8Array?]
): void {
  const { sizeBytes, blockBytes } = device;
  if (memory.length > 0) checkMemory(memory[0], length);
  if (!(Number.isInteger(offset) && offset >= 0 && Number.isInteger(length) && length >= 0)) {
    throw new BlockDeviceError('EINVAL', `${shown(length)} bytes at ${shown(offset)} is not a valid range`);
  }
  if (offset > sizeBytes || length > sizeBytes - offset) {
    throw new BlockDeviceError(errno, `${length} bytes at ${offset} reach past the end of the disk at ${sizeBytes}`);
  }
  if (offset % blockBytes !== 0 || length % blockBytes !== 0) {
    throw new BlockDeviceError('EINVAL', `${length} bytes at ${offset} are not whole blocks of ${blockBytes}`);
  }
}

/** Not by `instanceof`: Jest gives a program other classes than the library has. */
function checkMemory(memory: unknown, length: number): void {
  const isBytes = ArrayBuffer.isView(memory) && 'subarray' in memory;
  const bytes = isBytes ? memory.byteLength : 0;
  if (isBytes && !(Number.isInteger(length) && bytes < length)) return;
  const what = isBytes ? `the memory has ${bytes} bytes for ${shown(length)}` : `the memory is ${shown(memory)}`;
  throw new BlockDeviceError('EINVAL', `${what}: pass a Buffer of the whole length`);
}
