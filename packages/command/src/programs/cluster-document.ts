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

export const clusterSchema = z.object({
  kind: z.literal('cluster'),
  version: z.literal(1),
  pid: number,
  address: z.string(),
  time: z.string(),
  uptimeSeconds: number,
  cluster: z.string().nullable(),
  leader: z.string().nullable(),
  trouble: z.string().nullable(),
  status: statusSchema.nullable(),
});

export type ClusterDocument = z.infer<typeof clusterSchema>;
