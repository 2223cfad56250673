import { RoceError } from 'rocev2/internal/core';
import type { BlockDevice } from 'rocev2/internal/disk';
import { type MediumAccess, type ReservationStore, Reservations } from './reservations.js';
import { refuse, STATUS } from './status.js';

export interface NamespaceInit {
  /** Namespace ID, 1..1024. */
  readonly nsid: number;
  readonly disk: BlockDevice;
  /** 16 bytes that name the data: the same after a restart, another one for other data. */
  readonly uuid: Uint8Array;
  readonly readOnly?: boolean;
  readonly reservationStore?: ReservationStore;
}

/** Namespace IDs go up to this: one list of Identify has space for this many. */
export const NSID_MAX = 1024;
const LBA_SHIFT_MIN = 9;
const LBA_SHIFT_MAX = 12;

interface Operation {
  readonly hostId: string;
  readonly access: MediumAccess;
  readonly ended: Promise<unknown>;
}

export class Namespace {
  readonly nsid: number;
  readonly reservations: Reservations;
  readonly uuid: Uint8Array;
  readonly readOnly: boolean;
  readonly lbaShift: number;
  readonly counters = {
    reads: 0,
    writes: 0,
    bytesRead: 0,
    bytesWritten: 0,
    mediaErrors: 0,
  };

  #disk: BlockDevice;
  #isRetired = false;
  readonly #operations = new Set<Operation>();

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

  get disk(): BlockDevice {
    return this.#disk;
  }

  get blocks(): number {
    return Math.floor(this.#disk.sizeBytes / 2 ** this.lbaShift);
  }

  /** Resolves when that one is no longer used. */
  async replaceDisk(disk: BlockDevice): Promise<void> {
    if (lbaShiftOf(disk) > this.lbaShift) {
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `namespace ${this.nsid} has blocks of ${1 << this.lbaShift} bytes`);
    }
    checkSize(disk, this.lbaShift);
    this.#disk = disk;
    await this.#over(() => true);
  }

  async retire(): Promise<void> {
    this.#isRetired = true;
    await this.#over(() => true);
  }

  /** Throws the status of a conflict if a reservation does not let it. */
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
