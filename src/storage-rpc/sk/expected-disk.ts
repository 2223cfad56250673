/**
 * The disk that sessions have used: a server that has another one behind the same address must not get their requests.
 */

import { RoceError } from '../../core/errors.js';
import { formatBytes } from '../../core/units.js';
import { type DiskOpening, NIL_UUID } from '../disk/disk-identity.js';
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

  /** The server has counted a checkpoint: copies that were made before it are older. */
  learn(opening: DiskOpening): void {
    const [present] = this.#facts.openings ?? [];
    if (present?.mark !== opening.mark || present.checkpoint >= opening.checkpoint) return;
    this.#facts = { ...this.#facts, openings: [opening] };
  }
}

export function wrongDisk(why: string): RoceError {
  return new RoceError('ERR_ROCE_MISMATCH', `the storage server has another disk: ${why}`);
}

export function whyWrong(expected: DiskFacts, found: DiskFacts): string | undefined {
  const difference = differenceOf(expected, found);
  if (difference === undefined) return undefined;
  return `it has ${describeDisk(found)}, ${describeDisk(expected)} was used${difference}`;
}

/**
 * How a found disk differs from the one that was used, as the end of a sentence that names both; empty: by its name,
 * size or UUID. Undefined: it is the same one. It may have grown, or have another name.
 */
export function differenceOf(expected: DiskFacts, found: DiskFacts): string | undefined {
  if (expected.uuid !== NIL_UUID && found.uuid !== expected.uuid) return '';
  if (expected.sizeBytes === 0) return undefined;
  if (expected.uuid === NIL_UUID) {
    // Such disks have no identity but name and size.
    const isSame = found.uuid === NIL_UUID && found.sizeBytes === expected.sizeBytes && found.name === expected.name;
    return isSame ? undefined : '';
  }
  if (found.sizeBytes < expected.sizeBytes) return ': it has become smaller';
  if (found.generation < expected.generation) {
    return `: this is an older copy, opened ${found.generation} times, not ${expected.generation}`;
  }
  return otherCopy(expected, found);
}

/** By the opening of the disk that was used, as far as the found one remembers it. */
function otherCopy(expected: DiskFacts, found: DiskFacts): string | undefined {
  const [used] = expected.openings ?? [];
  const there = found.openings?.[found.generation - expected.generation];
  if (used === undefined || used.mark === 0n || there === undefined || there.mark === 0n) return undefined;
  if (there.mark !== used.mark)
    return `: this is another copy, as a restored backup is; opening ${expected.generation} of it was not the one that was used`;
  if (there.checkpoint >= used.checkpoint) return undefined;
  return `: this is an older copy, made while the disk was in use, before it was written the last time`;
}

export function describeDisk({ name, uuid, sizeBytes }: DiskFacts): string {
  const size = sizeBytes === 0 ? '' : `, ${formatBytes(sizeBytes)}`;
  return uuid === NIL_UUID ? `a disk without a UUID${size}` : `${name === '' ? 'disk' : `'${name}'`} ${uuid}${size}`;
}
