/**
 * What a disk may read as, sector by sector. Each write has a number of its own, which all of its sectors have as their bytes. A sector may read as a write unless
 * another one that was acknowledged before the read began came wholly after it.
 */

export const SECTOR = 512;

interface Write {
  /** 0: zeros. */
  readonly value: number;
  readonly begun: number;
  /** After this it takes effect no more. */
  ended: number;
  isAcknowledged: boolean;
}

/** A moment: one more with every question. */
export type Moment = number;

export class ModelDisk {
  readonly #sectors: Write[][];
  #now = 1;
  #lastValue = 0;

  constructor(sectors: number, values: readonly number[] = []) {
    this.#sectors = Array.from({ length: sectors }, (_, k) => [
      { value: values[k] ?? 0, begun: 0, ended: 0, isAcknowledged: true },
    ]);
    this.#lastValue = Math.max(0, ...values);
  }

  get sectors(): number {
    return this.#sectors.length;
  }

  now(): Moment {
    return this.#now++;
  }

  newValue(): number {
    return ++this.#lastValue;
  }

  /** A write has been asked for. */
  begin(first: number, count: number, value: number): { acknowledged(): void; lost(): void } {
    const write: Write = { value, begun: this.now(), ended: Number.POSITIVE_INFINITY, isAcknowledged: false };
    for (let sector = first; sector < first + count; sector++) this.#sectors[sector].push(write);
    return {
      acknowledged: () => {
        write.ended = this.now();
        write.isAcknowledged = true;
      },
      // Whoever reads the disk from now on sees it or not, and that for ever.
      lost: () => {
        write.ended = Math.min(write.ended, this.now());
      },
    };
  }

  /** Whether a sector may have read so at some time between two moments. */
  mayBe(sector: number, value: number, from: Moment, to: Moment): boolean {
    const writes = this.#sectors[sector];
    return writes.some(
      (write) =>
        write.value === value &&
        write.begun <= to &&
        !writes.some((later) => later.isAcknowledged && later.ended < from && write.ended < later.begun),
    );
  }

  /** In words, for a sector that reads as it must not. */
  describe(sector: number): string {
    return this.#sectors[sector]
      .map(
        ({ value, begun, ended, isAcknowledged }) =>
          `${value} from ${begun} to ${isAcknowledged ? ended : `${ended}, lost`}`,
      )
      .join('; ');
  }
}

/** The bytes of a write. */
export function bytesOf(value: number, sectors: number): Buffer {
  const sector = Buffer.alloc(SECTOR);
  if (value > 0) {
    sector.fill(`${value} `);
    sector.writeUInt32LE(value, 0);
  }
  return Buffer.concat(Array.from({ length: sectors }, () => sector));
}

/** The write whose bytes a sector has. -1: those of none. */
export function valueIn(bytes: Buffer, sector: number): number {
  const found = bytes.subarray(sector * SECTOR, (sector + 1) * SECTOR);
  const value = found.readUInt32LE(0);
  return found.equals(bytesOf(value, 1)) ? value : -1;
}
