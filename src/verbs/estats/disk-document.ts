/** What a watched disk program, a storage server or an NBD gateway, answers to `GET /estats.json`. Counts are totals since it was started. */

import { z } from 'zod';
import { opLatencySchema } from './op-latency-document.js';

const number = z.number();

/** What can be asked of a disk. */
export const DISK_OPS = ['read', 'write', 'flush', 'trim', 'zero'] as const;
/** One of {@link DISK_OPS}. */
export type DiskOp = (typeof DISK_OPS)[number];

const diskOpSchema = z.object({
  op: z.enum(DISK_OPS),
  /** Done or failed. */
  requests: number,
  bytes: number,
  errors: number,
});

/** Parses the document of a storage server or an NBD gateway. */
export const diskSchema = z.object({
  kind: z.literal('disk'),
  version: z.literal(1),
  pid: number,
  /** IP address of a server; of a gateway the address clients of NBD come to. */
  address: z.string(),
  /** ISO 8601. */
  time: z.string(),
  uptimeSeconds: number,
  role: z.enum(['server', 'gateway']),
  /** For people: where the data is. */
  store: z.string(),
  sizeBytes: number,
  /** What tells the disk from others; null where nothing does. */
  identity: z.object({ uuid: z.string(), name: z.string(), generation: number }).nullable(),
  /** Requests that reached the disk. */
  ops: z.array(diskOpSchema),
  /** Time at the disk of those that succeeded in the last minute or two. */
  latency: z.array(opLatencySchema),
  /** Of a gateway: NBD clients connected now. */
  nbdClients: number,
  /** Connections by transport: of a server those of its clients, of a gateway its own to the server. */
  connections: z.object({ rdma: number, tcp: number }),
  /** Data that was not what its sender had checked. */
  crcMismatches: number,
  /** Of a server: clients refused because they are for another disk. Of a gateway: 1 while it refuses its server for that. */
  wrongDisks: number,
  /** Of a disk in a file that the program holds itself. */
  file: z
    .object({
      /** Memory for the table of checksums. */
      tableMemoryBytes: number,
      /** Regions of 64 MiB that are still to be checked after a crash. */
      unsettledRegions: number,
      /** Reads that failed because a checksum was wrong. */
      damagedReads: number,
      /** Null: no scrubber was asked for. */
      scrub: z
        .object({ passes: number, checkedBytes: number, damagedBlocks: number, unreadableBytes: number })
        .nullable(),
    })
    .nullable(),
  /** Of a gateway to a storage server: the state of the RDMA path, and what it has been through. */
  path: z
    .object({
      state: z.enum(['RDMA', 'HOLD_DOWN', 'PROBE', 'RAMP', 'DRAINED']),
      failovers: number,
      moves: number,
      resentRequests: number,
      serverRestarts: number,
      /** How often the server could not be reached at all. */
      outages: number,
      /** Why it cannot be reached now, and for how long; null: it can. */
      outage: z.object({ seconds: number, reason: z.string(), isWrongDisk: z.boolean() }).nullable(),
    })
    .nullable(),
});

/** What such a program answers. */
export type DiskDocument = z.infer<typeof diskSchema>;
