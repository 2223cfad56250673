/** A namespace: a disk as hosts see it, in logical blocks. */

import { RoceError } from 'rocev2/internal/core';
import type { BlockDevice } from 'rocev2/internal/disk';
import { type MediumAccess, type ReservationStore, Reservations } from './reservations.js';
import { refuse, STATUS } from './status.js';

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
  /** Where reservations are kept that are to outlive a power loss. Absent: they end with the target, and hosts cannot ask for more. */
  readonly reservationStore?: ReservationStore;
}

/** Namespace IDs go up to this: one list of Identify has room for so many. */
export const NSID_MAX = 1024;
const LBA_SHIFT_MIN = 9;
const LBA_SHIFT_MAX = 12;

interface Operation {
  readonly hostId: string;
  readonly access: MediumAccess;
  readonly ended: Promise<unknown>;
}

/** A disk under a namespace ID. Its counters are those of its SMART log. */
export class Namespace {
  /** As in {@link NamespaceInit}. */
  readonly nsid: number;
  /** Which hosts may use it. */
  readonly reservations: Reservations;
  /** 16 bytes. */
  readonly uuid: Uint8Array;
  /** Write commands fail. */
  readonly readOnly: boolean;
  /** Base-2 logarithm of the bytes of a logical block: 9 or more, at most 12. */
  readonly lbaShift: number;
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

  #disk: BlockDevice;
  #isRetired = false;
  /** What the disk is doing. */
  readonly #operations = new Set<Operation>();

  /** Throws ERR_ROCE_OUT_OF_RANGE for a namespace ID or block size that cannot be, or a disk without a whole block. */
  constructor({ nsid, disk, uuid, readOnly = false, reservationStore }: NamespaceInit) {
    if (!Number.isInteger(nsid) || nsid < 1 || nsid > NSID_MAX) {
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `the namespace ID is ${nsid}`, `it must be from 1 to ${NSID_MAX}`);
    }
    this.nsid = nsid;
    this.uuid = uuid;
    this.readOnly = readOnly;
    this.lbaShift = lbaShiftOf(disk);
    checkSize(disk, this.lbaShift);
    this.#disk = disk;
    this.reservations = new Reservations(reservationStore);
  }

  /** Where requests go. */
  get disk(): BlockDevice {
    return this.#disk;
  }

  /** Number of logical blocks. */
  get blocks(): number {
    return Math.floor(this.#disk.sizeBytes / 2 ** this.lbaShift);
  }

  /**
   * Continues with a disk of another size, which has the data of the one before. Resolves when that one is not used any more. Throws
   * ERR_ROCE_OUT_OF_RANGE for a disk without a whole block, or whose blocks are larger than those that hosts know.
   */
  async replaceDisk(disk: BlockDevice): Promise<void> {
    if (lbaShiftOf(disk) > this.lbaShift) {
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `namespace ${this.nsid} has blocks of ${1 << this.lbaShift} bytes`);
    }
    checkSize(disk, this.lbaShift);
    this.#disk = disk;
    await this.#over(() => true);
  }

  /** Nothing begins on the disk any more; resolves when nothing is under way. */
  async retire(): Promise<void> {
    this.#isRetired = true;
    await this.#over(() => true);
  }

  /** Runs something on the disk for a host. Throws the status of a conflict if a reservation does not let it. */
  async use(hostId: string, access: MediumAccess, run: (disk: BlockDevice) => Promise<void>): Promise<void> {
    if (this.#isRetired) throw refuse(STATUS.INVALID_NAMESPACE);
    this.reservations.check(hostId, access);
    const operation = { hostId, access, ended: run(this.#disk) };
    this.#operations.add(operation);
    try {
      await operation.ended;
    } finally {
      this.#operations.delete(operation);
    }
  }

  /** Resolves when everything has ended that the disk is changing now for a host. */
  quiet(hostId: string): Promise<void> {
    return this.#over((operation) => operation.hostId === hostId && operation.access === 'write');
  }

  async #over(which: (operation: Operation) => boolean): Promise<void> {
    await Promise.allSettled([...this.#operations].filter(which).map(({ ended }) => ended));
  }
}

function lbaShiftOf({ blockBytes }: BlockDevice): number {
  const shift = Math.max(LBA_SHIFT_MIN, Math.ceil(Math.log2(blockBytes)));
  if (shift <= LBA_SHIFT_MAX) return shift;
  const text = `a disk with blocks of ${blockBytes} bytes cannot be a namespace`;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', text, `its blocks may have up to ${1 << LBA_SHIFT_MAX} bytes`);
}

function checkSize({ sizeBytes }: BlockDevice, lbaShift: number): void {
  if (sizeBytes >= 2 ** lbaShift) return;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `a disk of ${sizeBytes} bytes is less than one block`);
}
