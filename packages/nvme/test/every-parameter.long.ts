/** Every exported function and method of NVMe, with each parameter replaced by what it cannot be. */

import { MemoryDevice } from 'rocev2/internal/disk';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bound, type Call, type Case, close, wronglyTaken } from '../../../test/support/wrong-arguments.js';
import { NvmeTargetServer, openNvme } from '../src/index.js';

const HOST = '127.65.6.1';
const NQN = 'nqn.2026-01.org.example:arguments';
const HOST_NQN = 'nqn.2026-01.org.example:host';
let target: NvmeTargetServer;
let cases: readonly Case[];
const disk = new MemoryDevice(1 << 20);

beforeAll(async () => {
  target = await NvmeTargetServer.open({ subsystems: [{ nqn: NQN, disks: [disk] }], tcpAddresses: [HOST], port: 0 });
  const [{ port }] = target.ports;
  cases = [
    {
      name: 'NvmeTargetServer.open',
      call: NvmeTargetServer.open as Call,
      undo: close,
      args: [
        {
          subsystems: [{ nqn: NQN, disks: [disk] }],
          devices: [],
          tcpAddresses: [HOST],
          port: 0,
          poolBytesMax: 1 << 23,
          firmware: '1',
          faults: 'read,delay=1us',
          seed: 1,
          onNotice: () => {},
        },
      ],
    },
    {
      name: 'NvmeTargetServer.open with a subsystem',
      call: ((subsystem: object) =>
        NvmeTargetServer.open({ subsystems: [subsystem as never], tcpAddresses: [HOST], port: 0 })) as Call,
      undo: close,
      args: [{ nqn: NQN, disks: [disk], hosts: [HOST_NQN], hostSecrets: [], readOnly: false }],
    },
    { name: 'NvmeTargetServer.addNamespace', call: bound(target, 'addNamespace'), args: [NQN, disk, false] },
    { name: 'NvmeTargetServer.removeNamespace', call: bound(target, 'removeNamespace'), args: [NQN, 77] },
    { name: 'NvmeTargetServer.resizeNamespace', call: bound(target, 'resizeNamespace'), args: [NQN, 1, disk] },
    {
      name: 'NvmeTargetServer.setAnaState',
      call: bound(target, 'setAnaState'),
      args: [target.ports[0], 'optimized'],
    },
    { name: 'NvmeTargetServer.namespaceCounters', call: bound(target, 'namespaceCounters'), args: [NQN] },
    {
      name: 'openNvme',
      call: openNvme as Call,
      undo: close,
      args: [
        {
          address: HOST,
          port,
          nqn: NQN,
          nsid: 1,
          hostNqn: HOST_NQN,
          ioQueues: 1,
          entries: 8,
          digests: false,
          keepAliveMs: 5000,
          lossTimeoutMs: 0,
          onNotice: () => {},
        },
      ],
    },
  ];
}, 60_000);
afterAll(() => target.close());

it('arguments that cannot be are refused with a RoceError', async () => {
  expect(await wronglyTaken(cases)).toEqual([]);
}, 600_000);
