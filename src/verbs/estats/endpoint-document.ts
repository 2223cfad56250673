/** What an endpoint answers to `GET /estats.json`. Times are nanoseconds unless their name says otherwise. */

import { z } from 'zod';
import { QP_COUNTER_NAMES, WAIT_CAUSES } from '../../memory/ring/telemetry-page.js';
import { opLatencySchema, summarySchema } from './op-latency-document.js';
import { STAGES } from './stages.js';

const number = z.number();

/** An enum of names that are kept as a list. */
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
  /** The endpoint's IP address. */
  address: z.string(),
  /** For people: what carries the packets. */
  port: z.string(),
  /** Where the NIC runs: on the program's event loop, or in a thread of its own. */
  engine: z.enum(['inline', 'worker']),
  /** ISO 8601, of this document and of the first window in it. */
  time: z.string(),
  windowStart: z.string(),
  /** Seconds of one window, and that this document covers. */
  windowSeconds: number,
  coveredSeconds: number,
  uptimeSeconds: number,
  /** One row a group and stage. */
  groups: z.array(
    summarySchema.extend({ conn: z.string(), op: z.string(), status: z.string(), stage: nameOf(STAGES) }),
  ),
  /** Posted to polled of all successful work by operation, all connections together. */
  latency: z.array(opLatencySchema),
  /** Connections that are open: what they added up in the time covered, and in all. */
  qps: z.array(
    z.object({
      conn: z.string(),
      qpn: number,
      remote: z.object({ address: z.string(), qpn: number }).nullable(),
      /**
       * Missing while packets are plain: who the peer has proven to be, the cipher, the SPIs of what is sent and received; and since there are keys, packets sealed and
       * opened, dropped as replayed and as forged, and changes of keys. Queue pairs that share a connection of the exchange share the keys.
       */
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
      /** Seconds of the time covered in which the connection existed. */
      observedSeconds: number,
      /** What rate control allows now, in bits/s of the link, and what recovery heads for; null: not limited. */
      rateBps: number.nullable(),
      targetRateBps: number.nullable(),
      /** DCQCN's estimate of congestion, 0..1; null for other schemes. */
      alpha: number.nullable(),
      covered: totalsSchema,
      total: totalsSchema,
    }),
  ),
  /** Lateness of the program's event loop; `stalledShare` is the part of the time covered that it stood still. */
  loopDelay: summarySchema.extend({ stalledShare: number, typicalStallNs: number }),
  device: z.object({ counters: z.record(z.string(), number) }),
  /** The dumps that are kept, oldest first, without what is in them: `GET /dumps.json` has that. */
  dumps: z.array(
    z.object({
      time: z.string(),
      reason: z.enum(['slow', 'error', 'asked']),
      conn: z.string(),
      op: z.string().optional(),
      status: z.string().optional(),
      /** Posted to polled. */
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

/** What an endpoint answers. */
export type EstatsSnapshot = z.infer<typeof endpointSchema>;
/** Latency of one group and stage. */
export type GroupRow = EstatsSnapshot['groups'][number];
/** One queue pair. */
export type QpRow = EstatsSnapshot['qps'][number];
