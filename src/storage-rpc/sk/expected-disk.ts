/**
 * The disk that sessions have used: a server that has another one behind the same address must not get their requests.
 */

import { RoceError } from '../../core/errors.js';
import { formatBytes } from '../../core/units.js';
import { NIL_UUID } from '../disk/disk-identity.js';
import { ANY_DISK, type DiskFacts } from './resume.js';

export class ExpectedDisk {
  #facts: DiskFacts;

  constructor(uuid = NIL_UUID) {
    this.#facts = { ...ANY_DISK, uuid };
  }

  get facts(): DiskFacts {
    return this.#facts;
  }

  accept(found: DiskFacts): void {
    const why = whyWrong(this.#facts, found);
    if (why === undefined) this.#facts = found;
    else throw wrongDisk(why);
  }
}

export function wrongDisk(why: string): RoceError {
  return new RoceError('ERR_ROCE_MISMATCH', `the storage server has another disk: ${why}`);
}

/** A disk of the same UUID may have grown, or have another name. */
export function whyWrong(expected: DiskFacts, found: DiskFacts): string | undefined {
  const names = `it has ${describeDisk(found)}, ${describeDisk(expected)} was used`;
  if (expected.uuid !== NIL_UUID && found.uuid !== expected.uuid) return names;
  if (expected.sizeBytes === 0) return undefined;
  if (expected.uuid === NIL_UUID) {
    // Such disks have no identity but name and size.
    const isSame = found.uuid === NIL_UUID && found.sizeBytes === expected.sizeBytes && found.name === expected.name;
    return isSame ? undefined : names;
  }
  if (found.sizeBytes < expected.sizeBytes) return `${names}: it has become smaller`;
  if (found.generation < expected.generation) {
    return `${names}: this is an older copy, opened ${found.generation} times, not ${expected.generation}`;
  }
  return undefined;
}

export function describeDisk({ name, uuid, sizeBytes }: DiskFacts): string {
  const size = sizeBytes === 0 ? '' : `, ${formatBytes(sizeBytes)}`;
  return uuid === NIL_UUID ? `a disk without a UUID${size}` : `${name === '' ? 'disk' : `'${name}'`} ${uuid}${size}`;
}
