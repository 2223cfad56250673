import { z } from 'zod';

const number = z.number();

const nodeSchema = z.object({
  node: number,
  address: z.string(),
  domain: z.string(),
  state: z.enum(['up', 'read-only', 'suspect', 'down']),
  silentMs: number,
  replicas: number,
  fragments: number,
  usedBytes: number,
  freeBytes: number,
  damaged: number,
  repaired: number,
  readOnly: z.string().nullable(),
});

const streamSchema = z.object({
  stream: z.string(),
  extents: number,
  coded: number,
  sealedBytes: number,
  owner: z.string().nullable(),
});

const statusSchema = z.object({
  managers: z.array(
    z.object({
      address: z.string(),
      leads: z.boolean(),
      since: z.string(),
    }),
  ),
  nodes: z.array(nodeSchema),
  streams: z.array(streamSchema),
  extents: z.object({
    open: number,
    sealed: number,
    coded: number,
    underReplicated: number,
    unavailable: number,
    copying: number,
    coding: number,
  }),
  counters: z.object({
    seals: number,
    copies: number,
    codings: number,
    rebuilds: number,
    deleted: number,
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
