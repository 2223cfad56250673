/** The lease of a disk as its server keeps it over a restart. */

/** The last lease of a disk. */
export interface LeaseRecord {
  /** Its term, 1 to 2^32 - 1. Who comes with an older one is fenced. */
  readonly term: number;
  /** UUID of the client that has it; undefined: clients that share the disk. */
  readonly owner: string | undefined;
  /** For people: who that is, at most 63 bytes of UTF-8 of it. */
  readonly label: string;
  /** It was not given back. */
  readonly isHeld: boolean;
}

/** Whether both say the same. */
export function isSameLease(a: LeaseRecord, b: LeaseRecord | undefined): boolean {
  return b !== undefined && a.term === b.term && a.owner === b.owner && a.label === b.label && a.isHeld === b.isHeld;
}

/** Where a disk keeps its last lease. */
export interface LeaseStore {
  /** What was there when the disk was opened; undefined: nothing yet. */
  readonly initial: LeaseRecord | undefined;
  /** Durable when it resolves. One call at a time. Rejects with a BlockDeviceError. */
  save(record: LeaseRecord): Promise<void>;
}
