/** The lease of a disk as its server keeps it over a restart. */

export interface LeaseRecord {
  /** A client with an older one is fenced. */
  readonly term: number;
  readonly owner: string | undefined;
  readonly label: string;
  readonly isHeld: boolean;
}

export function isSameLease(a: LeaseRecord, b: LeaseRecord | undefined): boolean {
  return b !== undefined && a.term === b.term && a.owner === b.owner && a.label === b.label && a.isHeld === b.isHeld;
}

export interface LeaseStore {
  readonly initial: LeaseRecord | undefined;
  /** One call at a time. Rejects with a BlockDeviceError. */
  save(record: LeaseRecord): Promise<void>;
}
