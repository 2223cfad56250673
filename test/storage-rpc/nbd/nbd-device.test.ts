import { createServer } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { NbdDevice } from '../../../src/storage-rpc/nbd/nbd-device.js';
import { parseNbdUri } from '../../../src/storage-rpc/nbd/nbd-uri.js';
import { blockDeviceContract, CONTRACT_DISK_BYTES } from '../../contracts/block-device-contract.js';
import { ServedDisk } from './nbd-pair.js';

let disk: ServedDisk | undefined;

async function serve(): Promise<ServedDisk> {
  disk = await ServedDisk.open(new MemoryDevice(CONTRACT_DISK_BYTES));
  return disk;
}

async function stop(): Promise<void> {
  await disk?.close();
  disk = undefined;
}

afterEach(stop);

blockDeviceContract('nbd', async () => NbdDevice.open((await serve()).server.uri), stop);

test('a request longer than the server takes goes in pieces', async () => {
  const big = await ServedDisk.open(new MemoryDevice(80 << 20));
  const device = await NbdDevice.open(big.server.uri);
  const data = Buffer.alloc(70 << 20);
  for (let i = 0; i < data.length; i += 4096) data.writeUInt32BE(i, i);
  await device.write(4096, data);
  const read = Buffer.alloc(data.length);
  await device.read(4096, read.length, read);
  expect(read.equals(data)).toBe(true);
  await device.close();
  await big.close();
});

test('an export whose size is not a multiple of its blocks is used up to its last whole block', async () => {
  const device = new MemoryDevice((4 << 20) + 1024);
  Object.defineProperty(device, 'blockBytes', { value: 4096 });
  const odd = await ServedDisk.open(device);
  const client = await NbdDevice.open(odd.server.uri);
  expect([client.sizeBytes, client.blockBytes]).toEqual([4 << 20, 4096]);
  await client.write((4 << 20) - 4096, Buffer.alloc(4096, 7));
  await expect(client.read(4 << 20, 1024, Buffer.alloc(1024))).rejects.toMatchObject({ errno: 'EINVAL' });
  await client.close();
  await odd.close();
});

test('a server with impossible block sizes is refused', async () => {
  const device = new MemoryDevice(4 << 20);
  Object.defineProperty(device, 'blockBytes', { value: 3000 });
  const odd = await ServedDisk.open(device);
  await expect(NbdDevice.open(odd.server.uri)).rejects.toMatchObject({ code: 'ERR_ROCE_MISMATCH' });
  await odd.close();
});

test('a server that goes away fails what is under way and what comes, with EIO', async () => {
  const { server } = await serve();
  const device = await NbdDevice.open(server.uri);
  const reads = Array.from({ length: 100 }, () => device.read(0, 65_536, Buffer.alloc(65_536)));
  const settled = Promise.allSettled(reads);
  await server.close();
  for (const result of await settled) {
    if (result.status === 'rejected') expect(result.reason).toMatchObject({ errno: 'EIO' });
  }
  await expect(device.read(0, 512, Buffer.alloc(512))).rejects.toMatchObject({ errno: 'EIO' });
  await device.close();
});

test('an export that is not there, a server that is not there, and a server that speaks something else', async () => {
  const { path } = await serve();
  await expect(NbdDevice.open(`nbd+unix:///other?socket=${path}`)).rejects.toMatchObject({
    code: 'ERR_ROCE_NOT_FOUND',
  });
  await expect(NbdDevice.open(`nbd+unix:///?socket=${path}.not`)).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
  const http = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
  await new Promise<void>((resolve) => http.listen(`${path}.http`, resolve));
  await expect(NbdDevice.open(`nbd+unix:///?socket=${path}.http`)).rejects.toMatchObject({ code: 'ERR_ROCE_MISMATCH' });
  http.close();
});

test.each([
  ['nbd://example.org', { address: { host: 'example.org', port: 10809 }, exportName: '' }],
  ['nbd://127.0.0.1:10810/disk0', { address: { host: '127.0.0.1', port: 10810 }, exportName: 'disk0' }],
  ['nbd://[::1]:1/a%20b', { address: { host: '::1', port: 1 }, exportName: 'a b' }],
  ['nbd+unix:///x?socket=/tmp/s', { address: { path: '/tmp/s' }, exportName: 'x' }],
  [
    'nbds://example.org/x?tls-certificates=/pki&tls-verify-peer=0',
    {
      address: { host: 'example.org', port: 10809 },
      exportName: 'x',
      tls: { hostname: 'example.org', verifyPeer: false, certificates: '/pki' },
    },
  ],
  [
    'nbds+unix://a%40b@/x?socket=/tmp/s&tls-psk-file=/k&tls-hostname=h&tls-type=psk',
    {
      address: { path: '/tmp/s' },
      exportName: 'x',
      tls: { hostname: 'h', verifyPeer: true, pskFile: '/k', user: 'a@b' },
    },
  ],
])('%s', (uri, target) => {
  expect(parseNbdUri(uri)).toEqual(target);
});

test.each(['nbds+unix://', 'nbdss://example.org', 'nbd+unix:///x', 'http://example.org', 'disk.img', 'nbd:'])(
  '%s is no URI we can use',
  (uri) => {
    expect(() => parseNbdUri(uri)).toThrow(/not an NBD URI/);
  },
);

test.each([
  ['nbd://h/x?socekt=/tmp/s', /unknown parameter 'socekt'/],
  ['nbd://h/x?tls-psk-file=/k', /unknown parameter 'tls-psk-file' \(it is for TLS: nbds/],
  ['nbds://h/x?tls-type=anon', /do not fit together/],
  ['nbds://h/x?tls-type=psk', /do not fit together/],
  ['nbds://h/x?tls-type=x509&tls-psk-file=/k', /do not fit together/],
  ['nbds://h/x?tls-certificates=/pki&tls-psk-file=/k', /do not fit together/],
  ['nbds://h/x?tls-verify-peer=maybe', /do not fit together/],
])('%s is refused: what it asks of TLS would not be done', (uri, why) => {
  expect(() => parseNbdUri(uri)).toThrow(why);
});
