/** What a watched disk program, a storage server or an NBD gateway, answers to `GET /estats.json`. Counts are totals since it was started. */

import type { OpLatency } from './op-latency.js';

/** What can be asked of a disk. */
export const DISK_OPS = ['read', 'write', 'flush', 'trim', 'zero'] as const;
/** One of {@link DISK_OPS}. */
export type DiskOp = (typeof DISK_OPS)[number];

/** Of a disk in a file that the program holds itself. */
interface FileFacts {
  /** Memory for the table of checksums. */
  readonly tableMemoryBytes: number;
  /** Regions of 64 MiB that are still to be checked after a crash. */
  readonly unsettledRegions: number;
  /** Reads that failed because a checksum was wrong. */
  readonly damagedReads: number;
  /** Null: no scrubber was asked for. */
  readonly scrub: {
    readonly passes: number;
    readonly checkedBytes: number;
    readonly damagedBlocks: number;
    readonly unreadableBytes: number;
  } | null;
}

/** Of a gateway to a storage server: the state of the RDMA path, and what it has been through. */
interface PathFacts {
  readonly state: 'RDMA' | 'HOLD_DOWN' | 'PROBE' | 'RAMP' | 'DRAINED';
  readonly failovers: number;
  readonly moves: number;
  readonly resentRequests: number;
  readonly serverRestarts: number;
  /** How often the server could not be reached at all. */
  readonly outages: number;
  /** Why it cannot be reached now, and for how long; null: it can. */
  readonly outage: { readonly seconds: number; readonly reason: string; readonly isWrongDisk: boolean } | null;
}

/** What such a program answers. */
export interface DiskDocument {
  /** Tells the kinds of documents apart. */
  readonly kind: 'disk';
  /** Version of this kind. */
  readonly version: 1;
  /** Process number. */
  readonly pid: number;
  /** IP address of a server; of a gateway the address clients of NBD come to. */
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
  /** What tells the disk from others; null where nothing does. */
  readonly identity: { readonly uuid: string; readonly name: string; readonly generation: number } | null;
  /** Requests that reached the disk, done or failed. */
  readonly ops: ReadonlyArray<{
    readonly op: DiskOp;
    readonly requests: number;
    readonly bytes: number;
    readonly errors: number;
  }>;
  /** Time at the disk of those that succeeded in the last minute or two. */
  readonly latency: readonly OpLatency[];
  /** Of a gateway: NBD clients connected now. */
  readonly nbdClients: number;
  /** Connections by transport: of a server those of its clients, of a gateway its own to the server. */
  readonly connections: { readonly rdma: number; readonly tcp: number };
  /** Data that was not what its sender had checked. */
  readonly crcMismatches: number;
  /** Of a server: clients refused because they are for another disk. Of a gateway: 1 while it refuses its server for that. */
  readonly wrongDisks: number;
  /** Null: the data is not in a file. */
  readonly file: FileFacts | null;
  /** Null: the program is not a gateway to a storage server. */
  readonly path: PathFacts | null;
}
