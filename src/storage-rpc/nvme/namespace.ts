/** A namespace: a disk as hosts see it, in logical blocks. */

import { RoceError } from '../../core/errors.js';
import type { BlockDevice } from '../disk/block-device.js';

/** What a namespace is made of. */
export interface NamespaceInit {
  /** Namespace ID, 1..1024. */
  readonly nsid: number;
  /** The disk; the caller closes it. */
  readonly disk: BlockDevice;
  /** 16 bytes that name the data: the same after a restart, another one for other data. NGUID and UUID of the namespace. */
  readonly uuid: Uint8Array;
  /** Hosts cannot write. Default false. */
  readonly readOnly?: boolean;
}

/** Namespace IDs go up to this: one list of Identify has room for so many. */
export const NSID_MAX = 1024;
const LBA_SHIFT_MIN = 9;
const LBA_SHIFT_MAX = 12;

/** A disk under a namespace ID. Its counters are those of its SMART log. */
export class Namespace {
  /** As in {@link NamespaceInit}. */
  readonly nsid: number;
  /** Where requests go. */
  readonly disk: BlockDevice;
  /** 16 bytes. */
  readonly uuid: Uint8Array;
  /** Write commands fail. */
  readonly readOnly: boolean;
  /** Base-2 logarithm of the bytes of a logical block: 9 or more, at most 12. */
  readonly lbaShift: number;
  /** Number of logical blocks. */
  readonly blocks: number;
  /** Commands that succeeded, and their bytes. */
  readonly counters = {
    /** Read commands. */
    reads: 0,
    /** Write commands. */
    writes: 0,
    /** Bytes of read commands. */
    bytesRead: 0,
    /** Bytes of write commands. */
    bytesWritten: 0,
    /** Commands whose disk failed. */
    mediaErrors: 0,
  };

  /** Throws ERR_ROCE_OUT_OF_RANGE for a namespace ID or block size that cannot be, or a disk without a whole block. */
  constructor({ nsid, disk, uuid, readOnly = false }: NamespaceInit) {
    const lbaShift = Math.max(LBA_SHIFT_MIN, Math.ceil(Math.log2(disk.blockBytes)));
    if (!Number.isInteger(nsid) || nsid < 1 || nsid > NSID_MAX) {
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `the namespace ID is ${nsid}`, `it must be from 1 to ${NSID_MAX}`);
    }
    if (lbaShift > LBA_SHIFT_MAX) {
      const text = `a disk with blocks of ${disk.blockBytes} bytes cannot be a namespace`;
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', text, `its blocks may have up to ${1 << LBA_SHIFT_MAX} bytes`);
    }
    this.nsid = nsid;
    this.disk = disk;
    this.uuid = uuid;
    this.readOnly = readOnly;
    this.lbaShift = lbaShift;
    this.blocks = Math.floor(disk.sizeBytes / 2 ** lbaShift);
    if (this.blocks === 0) {
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `a disk of ${disk.sizeBytes} bytes is less than one block`);
    }
  }
}
