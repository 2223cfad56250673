/**
 * Checks what endpoints and disk programs of this version answer: the other process may be of another version, or
 * another program.
 */

import { DISK_OPS, STAGES } from 'rocev2/internal/estats';
import { QP_COUNTER_NAMES, WAIT_CAUSES } from 'rocev2/internal/memory';
import { z } from 'zod';

const number = z.number();

const summarySchema = z.object({
  count: number,
  sumNs: number,
  minNs: number,
  p50Ns: number,
  p90Ns: number,
  p99Ns: number,
  p999Ns: number,
  maxNs: number,
});

const opLatencySchema = summarySchema.extend({
  op: z.string(),
  bars: z.array(z.object({ fromNs: number, toNs: number, count: number })),
});

const nameOf = <T extends string>(names: readonly T[]) => z.enum(names as readonly [T, ...T[]]);

const totalsSchema = z.object({
  waitsNs: z.record(nameOf(WAIT_CAUSES), number),
  activeNs: number,
  timeoutsNs: number,
  stalledUnsentNs: number,
  stalledUnheardNs: number,
  counters: z.record(nameOf(QP_COUNTER_NAMES), number),
});

/** Parses the document of an endpoint. */
export const endpointSchema = z.object({
  kind: z.literal('endpoint'),
  version: z.literal(1),
  pid: number,
  address: z.string(),
  port: z.string(),
  engine: z.enum(['inline', 'worker']),
  time: z.string(),
  windowStart: z.string(),
  windowSeconds: number,
  coveredSeconds: number,
  uptimeSeconds: number,
  groups: z.array(
    summarySchema.extend({ conn: z.string(), op: z.string(), status: z.string(), stage: nameOf(STAGES) }),
  ),
  latency: z.array(opLatencySchema),
  qps: z.array(
    z.object({
      conn: z.string(),
      qpn: number,
      remote: z.object({ address: z.string(), qpn: number }).nullable(),
      protection: z
        .object({
          peer: z.string(),
          cipher: z.string(),
          sendSpi: number,
          receiveSpi: number,
          sealed: number,
          opened: number,
          replayed: number,
          forged: number,
          rekeys: number,
        })
        .optional(),
      copies: z.object({ operations: number, bytes: number }).optional(),
      observedSeconds: number,
      rateBps: number.nullable(),
      targetRateBps: number.nullable(),
      alpha: number.nullable(),
      covered: totalsSchema,
      total: totalsSchema,
    }),
  ),
  loopDelay: summarySchema.extend({ stalledShare: number, typicalStallNs: number }),
  device: z.object({ counters: z.record(z.string(), number) }),
  dumps: z.array(
    z.object({
      time: z.string(),
      reason: z.enum(['slow', 'error', 'asked']),
      conn: z.string(),
      op: z.string().optional(),
      status: z.string().optional(),
      wholeNs: number.optional(),
    }),
  ),
  bounds: z.object({
    groups: number,
    overflowedSamples: number,
    windowsDroppedEarly: number,
    dumps: number,
    dumpsSuppressed: number,
  }),
});

const diskOpSchema = z.object({
  op: z.enum(DISK_OPS),
  requests: number,
  bytes: number,
  errors: number,
});

/** What {@link endpointSchema} accepts; the JSON Schema of `estats top --json` is made of it. */
export type EndpointDocument = z.infer<typeof endpointSchema>;

export const diskSchema = z.object({
  kind: z.literal('disk'),
  version: z.literal(1),
  pid: number,
  address: z.string(),
  time: z.string(),
  uptimeSeconds: number,
  role: z.enum(['server', 'gateway']),
  store: z.string(),
  sizeBytes: number,
  identity: z.object({ uuid: z.string(), name: z.string(), generation: number }).nullable(),
  ops: z.array(diskOpSchema),
  latency: z.array(opLatencySchema),
  nbdClients: number,
  connections: z.object({ rdma: number, tcp: number }),
  crcMismatches: number,
  wrongDisks: number,
  file: z
    .object({
      tableMemoryBytes: number,
      unsettledRegions: number,
      damagedReads: number,
      scrub: z
        .object({ passes: number, checkedBytes: number, damagedBlocks: number, unreadableBytes: number })
        .nullable(),
    })
    .nullable(),
  path: z
    .object({
      state: z.enum(['RDMA', 'HOLD_DOWN', 'PROBE', 'RAMP', 'DRAINED']),
      failovers: number,
      moves: number,
      resentRequests: number,
      serverRestarts: number,
      outages: number,
      outage: z.object({ seconds: number, reason: z.string(), isWrongDisk: z.boolean() }).nullable(),
    })
    .nullable(),
});
