/** What a watched manager of a cluster of extents answers to `GET /estats.json`: what `rocev2 extents status --json` shows, if it leads. */

import { z } from 'zod';

const number = z.number();

const nodeSchema = z.object({
  node: number,
  /** `HOST:PORT`. */
  address: z.string(),
  /** Its fault domain. */
  domain: z.string(),
  /** `suspect`: it has been silent for half of the time after which it is taken for down. `read-only`: it takes no new data. */
  state: z.enum(['up', 'read-only', 'suspect', 'down']),
  /** Since its last report; until it reports, since the manager knows of it. */
  silentMs: number,
  replicas: number,
  fragments: number,
  /** Of records and fragments that it has. */
  usedBytes: number,
  /** Space left. */
  freeBytes: number,
  /** Records that it has found damaged since it began, and those of them that are intact again. */
  damaged: number,
  repaired: number,
  /** Why it takes no new data; null: it does. */
  readOnly: z.string().nullable(),
});

const streamSchema = z.object({
  stream: z.string(),
  extents: number,
  /** Those of its extents that are coded. */
  coded: number,
  /** Of records in those that are sealed. */
  sealedBytes: number,
  /** Who appends to it; null: nobody. */
  owner: z.string().nullable(),
});

const statusSchema = z.object({
  /** Managers that are there, the one that leads first. */
  managers: z.array(
    z.object({
      /** `HOST:PORT`. */
      address: z.string(),
      leads: z.boolean(),
      /** Since when it leads, or is there: ISO 8601. */
      since: z.string(),
    }),
  ),
  /** All that have ever joined. */
  nodes: z.array(nodeSchema),
  streams: z.array(streamSchema),
  /** By state, now. */
  extents: z.object({
    open: number,
    sealed: number,
    /** Those of the sealed ones that are in fragments. */
    coded: number,
    underReplicated: number,
    unavailable: number,
    /** Replicas and fragments being made of others. */
    copying: number,
    /** Extents being coded. */
    coding: number,
  }),
  /** Since the manager began to lead. */
  counters: z.object({
    seals: number,
    /** Replicas made anew. */
    copies: number,
    /** Extents coded. */
    codings: number,
    /** Fragments made anew. */
    rebuilds: number,
    /** Extents deleted. */
    deleted: number,
    /** Disks refused because they were old copies. */
    refusedDisks: number,
  }),
});

/** Parses the document of a manager. */
export const clusterSchema = z.object({
  kind: z.literal('cluster'),
  version: z.literal(1),
  pid: number,
  /** Where nodes and clients reach the manager, `HOST:PORT`. */
  address: z.string(),
  /** ISO 8601. */
  time: z.string(),
  uptimeSeconds: number,
  /** Name of the cluster; null: no manager has led so far. */
  cluster: z.string().nullable(),
  /** Who leads, as far as this manager knows, `HOST:PORT`; null: nobody. */
  leader: z.string().nullable(),
  /** Why a manager that leads cannot tell how the cluster is; null: it can, or it does not lead. */
  trouble: z.string().nullable(),
  /** The cluster, of the manager that leads; null of the others. */
  status: statusSchema.nullable(),
});

/** What a manager answers. */
export type ClusterDocument = z.infer<typeof clusterSchema>;
