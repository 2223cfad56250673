import { method, nicOptionsShape, type SecureFlags, secureOf, serveParent } from '@rocev2/command';
import { openDevice, type RdmaDevice } from 'rocev2/internal/verbs';
import { z } from 'zod';
import { type NodeServer, serveNode } from '../index.js';
import { EXTENT_TRANSPORTS } from '../live/peer-connector.js';

let device: RdmaDevice | undefined;
let node: NodeServer | undefined;

const service = {
  start: method(
    {
      ...nicOptionsShape,
      secure: z.custom<SecureFlags>(),
      bind: z.string(),
      folder: z.string(),
      journal: z.object({ journal: z.string(), journalBytes: z.number() }).optional(),
      keepDeletedMs: z.number(),
      manager: z.string(),
      transport: z.enum(EXTENT_TRANSPORTS),
      estats: z.boolean(),
    },
    async ({ bind, folder, journal, keepDeletedMs, manager, transport, estats, secure, ...nic }) => {
      device = await openDevice({ address: bind, udpPort: 0, estats, ...nic, ...(await secureOf(secure)) });
      node = await serveNode({ device, folder, keepDeletedMs, manager, transport, ...journal });
      return { address: node.address, node: node.node, cluster: node.cluster };
    },
  ),
  close: method({}, async () => {
    await node?.close();
    await device?.close();
  }),
};

export type NodeService = typeof service;

serveParent(service);
