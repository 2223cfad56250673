import { expect, test } from 'vitest';
import { parseNvmeUri } from '../../src/cli/disk/nvme-backend.js';
import { parseDisk } from '../../src/cli/nvme/disk-option.js';
import { MemoryDevice } from '../../src/storage-rpc/disk/memory-device.js';
import { NvmeTargetServer } from '../../src/storage-rpc/live/nvme-target-server.js';
import { NbdDevice } from '../../src/storage-rpc/nbd/nbd-device.js';
import { freePort } from './both-sides.js';
import { run } from './run-in-process.js';

test.each([
  ['target', '--disk'],
  ['target --disk memory', 'needs a size'],
  ['target --disk tape', 'not a disk'],
  ['target --disk memory --size 1MiB --transport pigeon', 'one of rdma, tcp'],
  ['target --disk memory --size 1MiB --bind nowhere', 'nowhere'],
  ['target --disk memory --size 1MiB --host somebody', 'not an NVMe qualified name'],
  ['list 127.0.0.1', '--nqn'],
  ['list 127.0.0.1 --nqn disk', 'not an NVMe qualified name'],
])('nvme %s is a mistake, and says which', async (args, words) => {
  const { exitCode, stderr } = await run(['nvme', ...args.split(' ')]);
  expect(stderr).toContain(words);
  expect(exitCode).toBe(2);
});

test('a target that is not there has the exit code of that', async () => {
  const { exitCode, stderr } = await run(['nvme', 'discover', '127.0.2.99', '-p', '9']);
  expect(stderr).toContain('cannot connect');
  expect(exitCode).toBe(3);
});

test('the name of a disk is a word or an NQN, and a backend is none', () => {
  expect(parseDisk('memory')).toEqual({ nqn: 'nqn.2026-11.rocev2:disk', backend: 'memory' });
  expect(parseDisk('db=file:/a=b')).toEqual({ nqn: 'nqn.2026-11.rocev2:db', backend: 'file:/a=b' });
  expect(parseDisk('file:/a=b').backend).toBe('file:/a=b');
  expect(parseDisk('nqn.2026-11.example:x=nbd://host/x').nqn).toBe('nqn.2026-11.example:x');
  expect(() => parseDisk('a b=memory')).toThrow('not a disk');
});

test('a namespace has a URI of its own', () => {
  const namespace = { host: '192.0.2.7', port: 4420, nqn: 'nqn.2026-11.rocev2:db', nsid: 1 };
  expect(parseNvmeUri('nvme+tcp://192.0.2.7/nqn.2026-11.rocev2:db')).toEqual({ transport: 'tcp', ...namespace });
  expect(parseNvmeUri('nvme+rdma://[fd77::1]:4421/nqn.2026-11.rocev2:db?nsid=2')).toEqual({
    ...namespace,
    transport: 'rdma',
    host: 'fd77::1',
    port: 4421,
    nsid: 2,
  });
  for (const wrong of ['nvme+tcp://192.0.2.7', 'nvme://192.0.2.7/x', 'nvme+udp://192.0.2.7/x']) {
    expect(parseNvmeUri(wrong), wrong).toBeUndefined();
  }
});

test('an NBD export of a namespace: what is written to the one is in the other', async () => {
  const store = new MemoryDevice(1 << 20);
  const nqn = 'nqn.2026-11.example:disk';
  await using server = await NvmeTargetServer.open({
    subsystems: [{ nqn, disks: [store] }],
    tcpAddresses: ['127.0.2.21'],
    port: 0,
  });
  const interrupt = new AbortController();
  const port = await freePort();
  let isReady = () => {};
  const ready = new Promise<void>((resolve) => {
    isReady = resolve;
  });
  const backend = `nvme+tcp://127.0.2.21:${server.ports[0].port}/${nqn}`;
  const gateway = run(['disk', 'nbd', '--backend', backend, '--listen', `127.0.2.21:${port}`], {
    interrupted: interrupt.signal,
    onStderr: (soFar) => void (soFar.includes('Ctrl-C') && isReady()),
  });
  await ready;
  const disk = await NbdDevice.open(`nbd://127.0.2.21:${port}/disk0`);
  await disk.write(4096, Buffer.alloc(8192, 0x77));
  await disk.close();
  interrupt.abort();
  expect((await gateway).exitCode).toBe(0);
  const read = Buffer.alloc(8192);
  await store.read(4096, read.length, read);
  expect(read.every((byte) => byte === 0x77)).toBe(true);
});
