/** The owner of the demonstration as a process: it serves its entries in three ways, and computes without a break for a part of the time. */

import type { AddressInfo, Server } from 'node:net';
import { method, serveParent } from '@rocev2/command';
import { nowNs } from 'rocev2/internal/driver';
import { openDevice } from 'rocev2/internal/verbs';
import { z } from 'zod';
import { type KvServer, serveKv } from '../../index.js';
import { serveResp } from './resp.js';
import { KEYS, keyFor, valueFor } from './values.js';

const ADDRESS = '127.0.0.1';
const values = new Map(Array.from({ length: KEYS }, (_, key) => [keyFor(key), valueFor(key)]));
let store: KvServer<string> | undefined;
let server: Server | undefined;

/** Computes from `startNs + idleNs` on for `busyNs`, again and again, by a clock that all processes share. */
function computeInTurns(startNs: number, idleNs: number, busyNs: number): void {
  const beginNs = startNs + idleNs;
  setTimeout(
    () => {
      const endNs = beginNs + busyNs;
      while (nowNs() < endNs);
      computeInTurns(endNs, idleNs, busyNs);
    },
    Math.max(0, (beginNs - nowNs()) / 1e6),
  );
}

const service = {
  /** Serves; returns the TCP ports of the store and of the node:net server. */
  open: method({}, async () => {
    const device = await openDevice({ address: ADDRESS, udpPort: 0, engine: 'worker' });
    store = await serveKv<string>({ device, port: 0, codec: 'string', bytes: 8 << 20, entries: KEYS });
    for (const [key, value] of values) await store.set(key, value);
    server = await serveResp((key) => values.get(key) ?? '');
    return { kvPort: store.port, netPort: (server.address() as AddressInfo).port };
  }),
  /** A GET by the IPC channel between this process and its parent, which is that of `cluster`. */
  get: method({ key: z.string() }, ({ key }) => values.get(key) ?? ''),
  /** Begins to compute in turns; returns since when. */
  begin: method({ idleNs: z.number(), busyNs: z.number() }, ({ idleNs, busyNs }) => {
    const startNs = nowNs();
    computeInTurns(startNs, idleNs, busyNs);
    return startNs;
  }),
};

/** The calls that the process answers. */
export type DemoOwnerService = typeof service;

serveParent(service);
