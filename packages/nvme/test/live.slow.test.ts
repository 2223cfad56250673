/** An NVMe target and a host of ours on real sockets, over both transports. */

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import type { RdmaDevice } from '../../../src/verbs/device.js';
import { openDevice } from '../../../src/verbs/open-device.js';
import { blockDeviceContract, CONTRACT_DISK_BYTES } from '../../../test/contracts/block-device-contract.js';
import { NvmeDialer } from '../src/live/nvme-dialer.js';
import { NvmeTargetServer, type NvmeTargetServerOptions } from '../src/live/nvme-target-server.js';
import { openNvme } from '../src/live/open-nvme.js';
import { NQN } from './world.js';

const HERE = '127.0.2.11';
const THERE = '127.0.2.12';

function serve(disk: MemoryDevice, options: Partial<NvmeTargetServerOptions>): Promise<NvmeTargetServer> {
  return NvmeTargetServer.open({ subsystems: [{ nqn: NQN, disks: [disk] }], ...options });
}

describe('over TCP', () => {
  let server: NvmeTargetServer;
  const connect = async () => {
    server = await serve(new MemoryDevice(CONTRACT_DISK_BYTES + 1536), { tcpAddresses: [HERE], port: 0 });
    return openNvme({ address: HERE, port: server.ports[0].port, nqn: NQN, ioQueues: 2 });
  };
  blockDeviceContract('a namespace of 1 MiB and 1,536 bytes over TCP', connect, () => server.close());

  it('comes back to a target that was restarted, and sends again what was under way', async () => {
    const store = new MemoryDevice(CONTRACT_DISK_BYTES);
    const first = await serve(store, { tcpAddresses: [HERE], port: 0 });
    const [{ port }] = first.ports;
    await using disk = await openNvme({ address: HERE, port, nqn: NQN });
    await disk.write(0, Buffer.alloc(4096, 1));
    await first.close();
    const writing = disk.write(4096, Buffer.alloc(4096, 2));
    await using _second = await serve(store, { tcpAddresses: [HERE], port });
    await writing;
    const read = Buffer.alloc(8192);
    await disk.read(0, read.length, read);
    expect([read[0], read[4096]]).toEqual([1, 2]);
  });

  it('gives its requests to no other disk in the place of its own, says so, and goes on when the right one is back', async () => {
    const store = new MemoryDevice(CONTRACT_DISK_BYTES);
    const first = await serve(store, { tcpAddresses: [HERE], port: 0 });
    const [{ port }] = first.ports;
    const notices: string[] = [];
    let onRefusal = () => {};
    const refused = new Promise<void>((resolve) => {
      onRefusal = resolve;
    });
    const onNotice = (notice: string) => {
      notices.push(notice);
      if (notice.startsWith('REFUSED')) onRefusal();
    };
    await using disk = await openNvme({ address: HERE, port, nqn: NQN, onNotice });
    await first.close();
    const other = new MemoryDevice(CONTRACT_DISK_BYTES);
    const impostor = await serve(other, { tcpAddresses: [HERE], port });
    const writing = disk.write(0, Buffer.alloc(4096, 3));
    await refused;
    await impostor.close();
    await using _second = await serve(store, { tcpAddresses: [HERE], port });
    await writing;
    const read = Buffer.alloc(4096);
    await other.read(0, read.length, read);
    expect(read[0]).toBe(0);
    await store.read(0, read.length, read);
    expect(read[0]).toBe(3);
    expect(notices.find((notice) => notice.startsWith('REFUSED'))).toContain('another namespace: its UUID is');
    expect(notices.at(-1)).toContain('is back');
  });

  it('is fenced by a reservation that another host left at the target before', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rocev2-nvme-'));
    const reservations = join(folder, 'reservations.json');
    const holder = '02'.repeat(16);
    const state = { registrants: [[holder, '22']], type: 1, holder };
    writeFileSync(reservations, JSON.stringify({ version: 1, namespaces: { [`${NQN} 1`]: state } }));
    try {
      const store = new MemoryDevice(CONTRACT_DISK_BYTES);
      await using server = await serve(store, { tcpAddresses: [HERE], port: 0, reservations });
      await using disk = await openNvme({ address: HERE, port: server.ports[0].port, nqn: NQN });
      await disk.read(0, 512, Buffer.alloc(512));
      await expect(disk.write(0, Buffer.alloc(512))).rejects.toThrow('reservation conflict');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('fails what waits for a target that does not come back, after the time limit', async () => {
    const server = await serve(new MemoryDevice(CONTRACT_DISK_BYTES), { tcpAddresses: [HERE], port: 0 });
    await using disk = await openNvme({ address: HERE, port: server.ports[0].port, nqn: NQN, lossTimeoutMs: 0 });
    await server.close();
    await expect(disk.write(0, Buffer.alloc(4096, 1))).rejects.toThrow('EIO');
  });

  it.each([
    ['says nothing', () => {}],
    ['hangs up', (socket: Socket) => socket.destroy()],
    ['speaks something else', (socket: Socket) => socket.write('SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 and so on\r\n')],
  ])('is refused by a server that %s', async (_, greet) => {
    const stranger = createServer(greet).listen(0, HERE);
    await once(stranger, 'listening');
    const { port } = stranger.address() as AddressInfo;
    try {
      await using dialer = await NvmeDialer.open({ address: HERE, port, digests: true, answerTimeoutMs: 300 });
      await expect(dialer.dial(0, 32)).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
    } finally {
      stranger.close();
    }
  });

  it('is refused without a target, and with a wrong name', async () => {
    await using server = await serve(new MemoryDevice(CONTRACT_DISK_BYTES), { tcpAddresses: [HERE], port: 0 });
    const [{ port }] = server.ports;
    await expect(openNvme({ address: HERE, port, nqn: `${NQN}x` })).rejects.toThrow('connect invalid parameters');
    await expect(openNvme({ address: HERE, port, nqn: NQN, nsid: 2 })).rejects.toThrow();
    await expect(openNvme({ address: HERE, port: 1, nqn: NQN })).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
    await expect(openNvme({ address: HERE, port, nqn: 'disk' })).rejects.toMatchObject({ code: 'ERR_ROCE_MALFORMED' });
  });
});

describe('over RDMA', () => {
  let here: RdmaDevice;
  let there: RdmaDevice;
  beforeAll(async () => {
    here = await openDevice({ address: HERE });
    there = await openDevice({ address: THERE });
  });
  afterAll(async () => {
    await here.close();
    await there.close();
  });
  let server: NvmeTargetServer;
  const connect = async () => {
    server = await serve(new MemoryDevice(CONTRACT_DISK_BYTES), { devices: [there] });
    return openNvme({ address: THERE, nqn: NQN, device: here });
  };
  blockDeviceContract('a namespace over RDMA', connect, () => server.close());

  it('is refused where nobody listens', async () => {
    await expect(openNvme({ address: THERE, nqn: NQN, device: here })).rejects.toMatchObject({
      code: 'ERR_ROCE_CONNECT',
    });
  });
});
