import type { OpLatency } from './op-latency.js';

export const DISK_OPS = ['read', 'write', 'flush', 'trim', 'zero'] as const;
export type DiskOp = (typeof DISK_OPS)[number];

interface FileFacts {
  readonly tableMemoryBytes: number;
  readonly unsettledRegions: number;
  readonly damagedReads: number;
  readonly scrub: {
    readonly passes: number;
    readonly checkedBytes: number;
    readonly damagedBlocks: number;
    readonly unreadableBytes: number;
  } | null;
}

interface PathFacts {
  readonly state: 'RDMA' | 'HOLD_DOWN' | 'PROBE' | 'RAMP' | 'DRAINED';
  readonly failovers: number;
  readonly moves: number;
  readonly resentRequests: number;
  readonly serverRestarts: number;
  readonly outages: number;
  readonly outage: { readonly seconds: number; readonly reason: string; readonly isWrongDisk: boolean } | null;
}

export interface DiskDocument {
  /** Tells the kinds of documents apart. */
  readonly kind: 'disk';
  /** Version of this kind. */
  readonly version: 1;
  /** Process number. */
  readonly pid: number;
  readonly address: string;
  /** ISO 8601. */
  readonly time: string;
  /** Seconds since the program was started. */
  readonly uptimeSeconds: number;
  /** A storage server, or an NBD gateway. */
  readonly role: 'server' | 'gateway';
  /** For people: where the data is. */
  readonly store: string;
  /** Capacity that clients see, in bytes. */
  readonly sizeBytes: number;
  readonly identity: { readonly uuid: string; readonly name: string; readonly generation: number } | null;
  /** Requests that reached the disk, done or failed. */
  readonly ops: ReadonlyArray<{
    readonly op: DiskOp;
    readonly requests: number;
    readonly bytes: number;
    readonly errors: number;
  }>;
  readonly latency: readonly OpLatency[];
  readonly nbdClients: number;
  readonly connections: { readonly rdma: number; readonly tcp: number };
  /** Data that was not what its sender had checked. */
  readonly crcMismatches: number;
  readonly wrongDisks: number;
  /** Null: the data is not in a file. */
  readonly file: FileFacts | null;
  /** Null: the program is not a gateway to a storage server. */
  readonly path: PathFacts | null;
}
