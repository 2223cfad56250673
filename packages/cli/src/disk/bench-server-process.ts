import { method, nicOptionsShape, type SecureFlags, secureOf, serveParent } from '@rocev2/command';
import { NS_PER_US } from 'rocev2/internal/core';
import { MemoryDevice } from 'rocev2/internal/disk';
import { type FlowOptions, StorageServer } from 'rocev2/internal/storage-rpc';
import { openDevice } from 'rocev2/internal/verbs';
import { z } from 'zod';

const LOOPBACK = '127.0.0.1';

let close = async (): Promise<void> => {};

const service = {
  open: method(
    { sizeBytes: z.number().int(), flow: z.custom<FlowOptions>(), secure: z.custom<SecureFlags>(), ...nicOptionsShape },
    async ({ sizeBytes, flow, secure, ...nic }) => {
      const device = await openDevice({
        address: LOOPBACK,
        udpPort: 0,
        ...nic,
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
  cpuNs: method({}, () => {
    const { user, system } = process.cpuUsage();
    return (user + system) * NS_PER_US;
  }),
  close: method({}, () => close()),
};

export type BenchServerService = typeof service;

serveParent(service);
