import { method, nicOf, nicOptionsShape, type SecureFlags, secureOf, serveParent } from '@rocev2/command';
import { openDevice, type RdmaDevice } from 'rocev2/internal/verbs';
import { z } from 'zod';
import { CODE_NAMES, type ManagerServer, serveManager } from '../index.js';
import type { EtcdAccess } from '../live/etcd-access.js';
import { EXTENT_TRANSPORTS } from '../live/peer-connector.js';
import { serveClusterDocument } from './telemetry.js';

let device: RdmaDevice | undefined;
let manager: ManagerServer | undefined;
let telemetry: AsyncDisposable | undefined;

const service = {
  start: method(
    {
      ...nicOptionsShape,
      secure: z.custom<SecureFlags>(),
      bind: z.string(),
      folder: z.string().optional(),
      etcd: z.custom<readonly string[]>().optional(),
      etcdAccess: z.custom<EtcdAccess>().optional(),
      port: z.number(),
      extentBytes: z.number(),
      code: z.enum(CODE_NAMES).optional(),
      codeAfterMs: z.number(),
      transport: z.enum(EXTENT_TRANSPORTS),
      estats: z.boolean(),
    },
    async ({ bind, folder, etcd, etcdAccess, code, estats, secure, io, engine, spin, mapRegions, ...rest }) => {
      device = await openDevice({
        address: bind,
        udpPort: 0,
        estats,
        ...nicOf({ io, engine, spin, mapRegions }),
        ...(await secureOf(secure)),
      });
      manager = await serveManager({
        device,
        ...rest,
        ...(folder !== undefined && { folder }),
        ...(etcd !== undefined && { etcd, etcdAccess: etcdAccess ?? {} }),
        ...(code !== undefined && { code }),
      });
      telemetry = await serveClusterDocument(manager, estats);
      return { address: manager.address };
    },
  ),
  trouble: method({}, async () => manager?.trouble()),
  close: method({}, async () => {
    await telemetry?.[Symbol.asyncDispose]();
    await manager?.close();
    await device?.close();
  }),
};

export type ManagerService = typeof service;

serveParent(service);
