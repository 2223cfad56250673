/** NVMe/TCP over TLS 1.3 on real sockets: who gets in, and what is seen on the way. */

import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SYSTEM_CLOCK } from '../../../src/driver/system-clock.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { openDevice } from '../../../src/verbs/open-device.js';
import { NvmeTlsKey } from '../src/auth/tls-key.js';
import { NvmeHost } from '../src/host/nvme-host.js';
import { NvmeDialer } from '../src/live/nvme-dialer.js';
import { NvmeTargetServer } from '../src/live/nvme-target-server.js';
import { type OpenNvmeOptions, openNvme } from '../src/live/open-nvme.js';
import { DISCOVERY_NQN } from '../src/opcodes.js';
import { HOST_NQN, NQN, OTHER_NQN } from './world.js';

const HERE = '127.0.2.31';
const KEY = NvmeTlsKey.format(Buffer.alloc(32, 5));
const OTHER_HOST = 'nqn.2026-11.example:other-host';
const OTHER_KEY = NvmeTlsKey.format(Buffer.alloc(32, 6));
const SIZE = 1 << 20;

describe('NVMe/TCP over TLS', () => {
  let server: NvmeTargetServer;
  let port: number;
  beforeAll(async () => {
    server = await NvmeTargetServer.open({
      subsystems: [NQN, OTHER_NQN].map((nqn) => ({ nqn, disks: [new MemoryDevice(SIZE)] })),
      tcpAddresses: [HERE],
      port: 0,
      tlsKeys: [
        { hostNqn: HOST_NQN, key: KEY },
        { hostNqn: OTHER_HOST, key: OTHER_KEY },
      ],
    });
    [{ port }] = server.ports;
  });
  afterAll(() => server.close());
  const open = (options: Partial<OpenNvmeOptions>) =>
    openNvme({ address: HERE, port, nqn: NQN, hostNqn: HOST_NQN, ...options });

  it('carries a disk, of which nothing is seen on the way', async () => {
    const seen: Buffer[] = [];
    const relay = createServer((near) => {
      const far = connect(port, HERE);
      near.on('data', (bytes) => seen.push(bytes)).pipe(far);
      far.on('data', (bytes) => seen.push(bytes)).pipe(near);
      for (const end of [near, far]) end.on('error', () => {});
    }).listen(0, HERE);
    await once(relay, 'listening');
    const marked = Buffer.alloc(256 << 10, 'this is what nobody may read ');
    const disk = await open({ port: (relay.address() as AddressInfo).port, tlsKey: KEY });
    await disk.write(0, marked);
    const read = Buffer.alloc(marked.length);
    await disk.read(0, read.length, read);
    await disk.close();
    relay.close();
    expect(read.equals(marked)).toBe(true);
    const wire = Buffer.concat(seen);
    expect(wire.length).toBeGreaterThan(2 * marked.length);
    expect(wire.includes('nobody may read')).toBe(false);
  });

  it.each([
    ['no key', { tlsKey: undefined }, /does not answer as an NVMe.TCP target.*one without TLS\?\)$/],
    ['another key', { tlsKey: OTHER_KEY }, /^no TLS: [a-z0-9 /]+ \(does the target have TLS/],
    ['a name that the target does not know', { tlsKey: KEY, hostNqn: 'nqn.2026-11.example:nobody' }, /^no TLS: /],
  ])('lets in no host with %s, and says in words why', async (_, { tlsKey, ...options }, words) => {
    const connecting = open({ ...options, ...(tlsKey !== undefined && { tlsKey }) });
    await expect(connecting).rejects.toMatchObject({
      code: 'ERR_ROCE_CONNECT',
      message: expect.stringMatching(words),
    });
  });

  it.each([
    ['another host', { hostNqn: OTHER_HOST }, 'connect invalid host'],
    ['another subsystem', { nqn: OTHER_NQN }, 'connect invalid parameters'],
  ])('does not take the key of one host for %s', async (_, claimed, why) => {
    const tls = NvmeTlsKey.parse(KEY).pskOf({ hostNqn: HOST_NQN, subsystemNqn: NQN });
    await using dialer = await NvmeDialer.open({ address: HERE, port, digests: true, tls: [tls] });
    const names = { nqn: NQN, hostNqn: HOST_NQN, hostId: Buffer.alloc(16, 1), ...claimed };
    const association = { ioQueues: 0, entries: 2, keepAliveMs: 0, clock: SYSTEM_CLOCK };
    const dial = () => dialer.dial(0, 32);
    await expect(NvmeHost.connect({ dial, ...names, ...association })).rejects.toThrow(why);
  });

  it('takes identities of both versions, and of libnvme 1.13, and tells in discovery that TLS is required', async () => {
    for (const derivation of ['1', '1-libnvme', '0-libnvme'] as const) {
      const names = { hostNqn: HOST_NQN, subsystemNqn: DISCOVERY_NQN };
      const tls = NvmeTlsKey.parse(KEY).pskOf(names, derivation);
      await using dialer = await NvmeDialer.open({ address: HERE, port, digests: true, tls: [tls] });
      const host = await NvmeHost.connect({
        dial: () => dialer.dial(0, 32),
        nqn: DISCOVERY_NQN,
        hostNqn: HOST_NQN,
        hostId: Buffer.alloc(16, 1),
        ...{ ioQueues: 0, entries: 2, keepAliveMs: 0, clock: SYSTEM_CLOCK },
      });
      const page = await host.logPage(0x70, 2048);
      // TREQ, and SECTYPE of the address subtype.
      expect([page[1024 + 3], page[1024 + 768]]).toEqual([1, 2]);
      await host.close();
    }
  });

  it('is left by a host that has a key by a derivation which the target does not know', async () => {
    const tls = NvmeTlsKey.parse(KEY).pskOf({ hostNqn: HOST_NQN, subsystemNqn: NQN }, '0');
    await using dialer = await NvmeDialer.open({ address: HERE, port, digests: true, tls: [tls] });
    await expect(dialer.dial(0, 32)).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
  });

  it('is left by a host whose target has no TLS', async () => {
    const disks = [new MemoryDevice(SIZE)];
    await using plain = await NvmeTargetServer.open({
      subsystems: [{ nqn: NQN, disks }],
      tcpAddresses: [HERE],
      port: 0,
    });
    const connecting = open({ port: plain.ports[0].port, tlsKey: KEY });
    await expect(connecting).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
  });

  it('is not together with RDMA, not twice for a host, and not without the name of the host', async () => {
    const device = await openDevice({ address: HERE });
    const tlsKeys = [{ hostNqn: HOST_NQN, key: KEY }];
    await expect(
      NvmeTargetServer.open({
        subsystems: [{ nqn: NQN, disks: [new MemoryDevice(SIZE)] }],
        devices: [device],
        tlsKeys,
      }),
    ).rejects.toMatchObject({ code: 'ERR_ROCE_CONFLICT' });
    await expect(open({ device, tlsKey: KEY })).rejects.toMatchObject({ code: 'ERR_ROCE_CONFLICT' });
    await device.close();
    const twice = { subsystems: [{ nqn: NQN, disks: [new MemoryDevice(SIZE)] }], tcpAddresses: [HERE], port: 0 };
    await expect(NvmeTargetServer.open({ ...twice, tlsKeys: [...tlsKeys, ...tlsKeys] })).rejects.toMatchObject({
      code: 'ERR_ROCE_CONFLICT',
      message: expect.stringContaining(`there are two keys of ${HOST_NQN}`),
    });
    await expect(openNvme({ address: HERE, port, nqn: NQN, tlsKey: KEY })).rejects.toMatchObject({
      code: 'ERR_ROCE_INVALID_ARGUMENT',
    });
  });
});
