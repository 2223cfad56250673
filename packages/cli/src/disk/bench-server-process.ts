/** The storage server of the disk benchmark as a process of its own: a disk in memory, over RDMA and TCP. */

import { z } from 'zod';
import { NS_PER_US } from '../../core/units.js';
import { method } from '../../processes/calls.js';
import { serveParent } from '../../processes/serve-parent.js';
import { MemoryDevice } from '../../storage-rpc/disk/memory-device.js';
import type { FlowOptions } from '../../storage-rpc/live/flow-options.js';
import { StorageServer } from '../../storage-rpc/live/storage-server.js';
import { openDevice } from '../../verbs/open-device.js';
import { nicOptionsShape } from '../nic-options.js';
import { type SecureFlags, secureOf } from '../secure-options.js';

const LOOPBACK = '127.0.0.1';

let close = async (): Promise<void> => {};

const service = {
  /** Returns the TCP port to connect to. */
  open: method(
    { sizeBytes: z.number().int(), flow: z.custom<FlowOptions>(), secure: z.custom<SecureFlags>(), ...nicOptionsShape },
    async ({ sizeBytes, flow, secure, io, engine, spin }) => {
      const device = await openDevice({
        address: LOOPBACK,
        udpPort: 0,
        io,
        engine,
        spin,
        ...(await secureOf(secure)),
      });
      const disks = [new MemoryDevice(sizeBytes)];
      const server = await StorageServer.open({ disks, host: LOOPBACK, port: 0, device, ...flow });
      close = async () => {
        await server.close();
        await device.close();
      };
      return server.port;
    },
  ),
  /** CPU time of this process so far, user and system. */
  cpuNs: method({}, () => {
    const { user, system } = process.cpuUsage();
    return (user + system) * NS_PER_US;
  }),
  close: method({}, () => close()),
};

/** The calls that the process answers. */
export type BenchServerService = typeof service;

serveParent(service);
