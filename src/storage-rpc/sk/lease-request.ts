import { RoceError } from '../../core/errors.js';
import type { RandomSource } from '../../core/random.js';
import { UUID_BYTES, uuidText } from '../disk/disk-identity.js';
import type { DiskAccess, LeaseClaim, LeaseHolder } from './disk-lease.js';

/** Terms of a lease request. All fields are optional. */
export interface LeaseRequestOptions {
  readonly name?: string;
  readonly access?: DiskAccess;
  /** It can wait, default false: a client that had the disk before the server was started goes first. */
  readonly isPatient?: boolean;
  /** For people: who this is. */
  readonly label?: string;
}

/** The lease request of one client for one disk. */
export class LeaseRequest {
  readonly name: string;
  readonly #lease: Omit<LeaseClaim, 'term'>;
  term = 0;

  constructor(
    random: RandomSource,
    { name = '', access = 'shared', isPatient = false, label = '' }: LeaseRequestOptions = {},
  ) {
    this.name = name;
    const owner = uuidText(Uint8Array.from({ length: UUID_BYTES }, () => random.u32() & 0xff));
    this.#lease = { owner, access, isPatient, label };
  }

  get lease(): LeaseClaim {
    return { ...this.#lease, term: this.term };
  }
}

/** The error of a disk that another client writes to: ERR_ROCE_BUSY. */
export class DiskInUse extends RoceError {
  /** The client that writes to it. */
  readonly holder: Pick<LeaseHolder, 'label' | 'isConnected'>;
  /** The error in a few words. */
  readonly what: string;
  /** How long the lease lasts unless its holder renews it, nanoseconds. */
  readonly remainingNs: number;

  constructor(
    /** The client that writes to it. */
    holder: Pick<LeaseHolder, 'label' | 'isConnected'>,
    remainingNs: number,
  ) {
    const what = `the disk is in use by ${holder.label === '' ? 'another client' : holder.label}`;
    super('ERR_ROCE_BUSY', what, 'end it, wait for its end, share the disk, or only read it');
    this.what = what;
    this.holder = holder;
    this.remainingNs = remainingNs;
  }
}

export function fencedBy(label: string): RoceError {
  const who = label === '' ? 'another client' : label;
  return new RoceError('ERR_ROCE_FENCED', `${who} has taken over the disk`, 'restart after it has ended');
}
