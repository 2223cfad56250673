import { RoceError } from '../../core/errors.js';
import type { BlockDevice } from '../disk/block-device.js';
import type { DiskLimit } from '../fair/rate-limit.js';
import type { LeaseTerms } from './disk-lease.js';
import { checkNamedDisk, type NamedDisk, ServedDisk } from './served-disk.js';

export class DiskSet {
  readonly #terms: () => LeaseTerms;
  readonly #byIndex: ServedDisk[];
  readonly #byName = new Map<string, ServedDisk>();

  constructor(disks: readonly BlockDevice[], limit: DiskLimit | undefined, terms: () => LeaseTerms) {
    this.#terms = terms;
    this.#byIndex = disks.map((device) => new ServedDisk({ name: '', device, ...(limit && { limit }) }, terms()));
  }

  get named(): readonly ServedDisk[] {
    return [...this.#byName.values()];
  }

  find(name: string, index: number): ServedDisk | undefined {
    if (name !== '') return this.#byName.get(name);
    if (this.#byIndex.length > 0) return this.#byIndex[index];
    return index === 0 && this.#byName.size === 1 ? this.named[0] : undefined;
  }

  add(disk: NamedDisk): ServedDisk {
    checkNamedDisk(disk);
    if (this.#byName.has(disk.name)) throw new RoceError('ERR_ROCE_CONFLICT', `there is a disk '${disk.name}' already`);
    const served = new ServedDisk(disk, this.#terms());
    this.#byName.set(disk.name, served);
    return served;
  }

  get(name: string): ServedDisk {
    const disk = this.#byName.get(name);
    if (disk !== undefined) return disk;
    const names = [...this.#byName.keys()].join(', ') || 'none';
    throw new RoceError('ERR_ROCE_NOT_FOUND', `there is no disk '${name}'`, `there are: ${names}`);
  }

  renew(device: BlockDevice): ServedDisk {
    const index = this.#byIndex.findIndex((disk) => disk.device === device);
    const old = this.#byIndex[index] ?? this.named.find((disk) => disk.device === device);
    if (old === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', 'this server has no such disk');
    const next = old.again(this.#terms());
    if (index >= 0) this.#byIndex[index] = next;
    else this.#byName.set(old.name, next);
    return old;
  }

  delete(name: string): ServedDisk {
    const disk = this.get(name);
    this.#byName.delete(name);
    return disk;
  }
}
