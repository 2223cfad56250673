/** TLS of both ends of NBD: it protects whoever asks for it, and nobody gets around it. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConnectionOptions } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { NbdDevice } from '../../../src/storage-rpc/nbd/nbd-device.js';
import { NbdServer } from '../../../src/storage-rpc/nbd/server.js';
import type { NbdTlsOptions } from '../../../src/storage-rpc/nbd/tls/server-tls.js';
import { copyCertificates, hasOpenssl, makeCertificates, withdrawClient } from '../../support/certificates.js';
import { eventually } from '../../support/eventually.js';
import { ServedDisk } from './nbd-pair.js';
import { CMD, goData, metaData, OPT, option, RawClient, request, u16, u32, u64 } from './raw-client.js';

const SIZE = 8 << 20;
const ACK = 1;
const ERR_UNSUP = 0x80000001;
const ERR_INVALID = 0x80000003;
const ERR_TLS_REQD = 0x80000005;
const KEY = 'a5'.repeat(32);

let folder: string;
let pskFile: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-tls-'));
  pskFile = join(folder, 'keys.psk');
  writeFileSync(pskFile, `# of a test\nalice:${KEY}\nbob:${'17'.repeat(16)}\n`, { mode: 0o600 });
});
afterAll(() => rmSync(folder, { recursive: true }));

let disk: ServedDisk;
const clients: RawClient[] = [];
const devices: NbdDevice[] = [];
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy();
  for (const device of devices.splice(0)) await device.close();
  await disk?.close();
});

async function serve(tls?: NbdTlsOptions): Promise<void> {
  disk = await ServedDisk.open(new MemoryDevice(SIZE), tls && { tls });
}

async function raw(): Promise<RawClient> {
  const client = await RawClient.connect(disk.path);
  clients.push(client);
  return client;
}

async function open(scheme: string, parameters = ''): Promise<NbdDevice> {
  const device = await NbdDevice.open(`${scheme}/disk0?socket=${disk.path}${parameters}`);
  devices.push(device);
  return device;
}

async function answer(client: RawClient, code: number, data?: Uint8Array): Promise<number[]> {
  client.send(option(code, data));
  return (await client.optionReplies(code)).map(({ type }) => type);
}

async function isUsable(device: NbdDevice): Promise<void> {
  const data = Buffer.alloc(3 << 20);
  for (let i = 0; i < data.length; i += 512) data.writeUInt32BE(i, i);
  const back = Buffer.alloc(data.length);
  await device.write(1000, data);
  await device.flush();
  await device.read(1000, back.length, back);
  expect(back.equals(data)).toBe(true);
}

const alice: ConnectionOptions = {
  pskCallback: () => ({ identity: 'alice', psk: Buffer.from(KEY, 'hex') }),
  ciphers: 'kECDHEPSK',
  maxVersion: 'TLSv1.2',
  checkServerIdentity: () => undefined,
};

describe('a server that requires TLS, with keys', () => {
  test('serves our client, and says in its URI that it is to be reached over TLS', async () => {
    await serve({ pskFile });
    expect(disk.server.uri).toBe(`nbds+unix:///disk0?socket=${disk.path}`);
    await isUsable(await open('nbds+unix://alice@', `&tls-psk-file=${pskFile}`));
    await isUsable(await open('nbds+unix://bob@', `&tls-type=psk&tls-psk-file=${pskFile}`));
    expect(disk.server.counters).toMatchObject({ tlsSessions: 2, tlsFailures: 0, refusedConnections: 0 });
  });

  test('serves the client of node:tls, which alone may go on in the handshake', async () => {
    await serve({ pskFile });
    const client = await raw();
    await client.upgrade(alice);
    expect(await answer(client, OPT.GO, goData('disk0'))).toContain(ACK);
    const data = Buffer.alloc(4096, 7);
    client.send(request(CMD.WRITE, 0, data.length, { data }));
    expect((await client.reply()).errno).toBe(0);
    client.send(request(CMD.READ, 0, data.length));
    expect((await client.reply(data.length)).data.equals(data)).toBe(true);
  });

  test('hears nothing without TLS but STARTTLS and ABORT', async () => {
    await serve({ pskFile });
    const client = await raw();
    for (const code of [OPT.LIST, OPT.INFO, OPT.GO, OPT.STRUCTURED, OPT.LIST_META, OPT.SET_META, 4711]) {
      expect(await answer(client, code, goData('disk0'))).toEqual([ERR_TLS_REQD]);
    }
    expect(await answer(client, 4711, Buffer.alloc(100 * 1024))).toEqual([ERR_TLS_REQD]);
    expect(await answer(client, OPT.STARTTLS, Buffer.alloc(1))).toEqual([ERR_INVALID]);
    expect(await answer(client, OPT.ABORT)).toEqual([ACK]);
    await client.hungUp();
    const old = await raw();
    old.send(option(OPT.EXPORT_NAME, Buffer.from('disk0')));
    await old.hungUp();
    await expect(open('nbd+unix://')).rejects.toMatchObject({
      code: 'ERR_ROCE_MISMATCH',
      hint: expect.stringContaining('nbds://'),
    });
    expect(disk.server.counters.tlsSessions).toBe(0);
  });

  test.each([
    ['another key', () => ({ identity: 'alice', psk: Buffer.alloc(32, 1) })],
    ['a user it does not know', () => ({ identity: 'mallory', psk: Buffer.from(KEY, 'hex') })],
    ["somebody else's key", () => ({ identity: 'bob', psk: Buffer.from(KEY, 'hex') })],
  ])('refuses %s, and serves the next one', async (_, pskCallback) => {
    await serve({ pskFile });
    const client = await raw();
    await expect(client.upgrade({ ...alice, pskCallback })).rejects.toThrow();
    await eventually(() => disk.server.counters.tlsFailures === 1);
    expect(disk.server.counters.tlsSessions).toBe(0);
    await eventually(() => disk.server.clients === 0);
    await isUsable(await open('nbds+unix://alice@', `&tls-psk-file=${pskFile}`));
  });

  test('closes who speaks no TLS after STARTTLS', async () => {
    await serve({ pskFile });
    const client = await raw();
    expect(await answer(client, OPT.STARTTLS)).toEqual([ACK]);
    client.send(option(OPT.GO, goData('disk0')), Buffer.alloc(100));
    await client.hungUp();
    expect(disk.server.counters).toMatchObject({ tlsFailures: 1, requests: 0 });
  });

  test('does not take for secure what came in the clear behind STARTTLS', async () => {
    await serve({ pskFile });
    const client = await raw();
    const data = Buffer.alloc(512, 0x66);
    client.send(option(OPT.STARTTLS), option(OPT.GO, goData('disk0')), request(CMD.WRITE, 0, 512, { data }));
    await client.hungUp();
    expect(disk.server.counters).toMatchObject({ refusedConnections: 1, requests: 0, tlsSessions: 0 });
  });

  test('a client that goes during the handshake of TLS is forgotten', async () => {
    await serve({ pskFile });
    const client = await raw();
    expect(await answer(client, OPT.STARTTLS)).toEqual([ACK]);
    client.socket.destroy();
    await eventually(() => disk.server.clients === 0);
  });

  test('a server that ends closes clients over TLS, too', async () => {
    await serve({ pskFile });
    const client = await raw();
    await client.upgrade(alice);
    await disk.server.close();
    await client.hungUp();
  });
});

describe('a server with TLS for who wants it', () => {
  test('serves both, and forgets what was agreed on in the clear', async () => {
    await serve({ pskFile, policy: 'optional' });
    await isUsable(await open('nbd+unix://'));
    await isUsable(await open('nbds+unix://alice@', `&tls-psk-file=${pskFile}`));
    const client = await raw();
    expect(await answer(client, OPT.EXTENDED)).toEqual([ACK]);
    await client.upgrade(alice);
    expect(await answer(client, OPT.SET_META, metaData('disk0', 'base:allocation'))).toEqual([ERR_INVALID]);
    expect(await answer(client, OPT.STARTTLS)).toEqual([ERR_INVALID]);
    expect(await answer(client, OPT.GO, goData('disk0'))).toContain(ACK);
    client.send(request(CMD.READ, 0, 512));
    expect((await client.reply(512)).kind).toBe('simple');
  });
});

test('a server without TLS says so, and our client that insists on it sends nothing more', async () => {
  await serve();
  expect(await answer(await raw(), OPT.STARTTLS)).toEqual([ERR_UNSUP]);
  await expect(open('nbds+unix://alice@', `&tls-psk-file=${pskFile}`)).rejects.toMatchObject({
    code: 'ERR_ROCE_MISMATCH',
    message: expect.stringMatching(/^the NBD server has no TLS/),
  });
});

test('our client does not take for secure what a server sent in the clear behind its answer', async () => {
  await serve();
  const heard: Buffer[] = [];
  const reply = (code: number, type: number) => Buffer.concat([u64(0x0003e889045565a9n), u32(code), u32(type), u32(0)]);
  const fake: Server = createServer((socket) => {
    socket.on('error', () => {});
    socket.write(Buffer.concat([Buffer.from('NBDMAGICIHAVEOPT'), u16(3)]));
    socket.on('data', (bytes: Buffer) => {
      heard.push(bytes);
      if (Buffer.concat(heard).includes(option(OPT.STARTTLS))) {
        socket.write(Buffer.concat([reply(OPT.STARTTLS, ACK), reply(OPT.STRUCTURED, ACK)]));
      }
    });
  });
  const path = join(folder, 'fake');
  await new Promise<void>((resolve) => fake.listen(path, resolve));
  await expect(NbdDevice.open(`nbds+unix://alice@/?socket=${path}&tls-psk-file=${pskFile}`)).rejects.toMatchObject({
    code: 'ERR_ROCE_MISMATCH',
  });
  expect(Buffer.concat(heard).length).toBe(4 + 16);
  fake.close();
});

describe.skipIf(!hasOpenssl())('certificates', () => {
  let good: string;
  let other: string;
  beforeAll(() => {
    good = join(folder, 'good');
    other = join(folder, 'other');
    makeCertificates(good);
    makeCertificates(other);
    copyCertificates(good, join(folder, 'ca-only'), 'ca-cert.pem');
    copyCertificates(good, join(folder, 'server-only'), 'server-cert.pem', 'server-key.pem');
  });

  test('our client checks that of the server, and its name', async () => {
    await serve({ certificates: good });
    await isUsable(await open('nbds+unix://', `&tls-certificates=${folder}/ca-only`));
    await isUsable(await open('nbds+unix://', `&tls-verify-peer=0`));
    for (const wrong of [`&tls-certificates=${other}`, '', `&tls-certificates=${good}&tls-hostname=example.org`]) {
      await expect(open('nbds+unix://', wrong)).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
    }
  });

  test('over TCP the address is the name', async () => {
    await serve();
    const device = new MemoryDevice(SIZE);
    const tls = { certificates: good };
    const options = { listen: { host: '127.0.0.1', port: 0 }, exportName: 'x', description: '', device, tls };
    await using server = await NbdServer.open(options);
    expect(server.uri).toMatch(/^nbds:\/\/127\.0\.0\.1:\d+\/x$/);
    const client = await NbdDevice.open(`${server.uri}?tls-certificates=${good}`);
    await isUsable(client);
    await client.close();
  });

  test('a server that verifies its clients lets in those of its authority alone', async () => {
    await serve({ certificates: good, verifyPeer: true });
    await isUsable(await open('nbds+unix://', `&tls-certificates=${good}`));
    copyCertificates(good, join(folder, 'mixed'), 'ca-cert.pem');
    copyCertificates(other, join(folder, 'mixed'), 'client-cert.pem', 'client-key.pem');
    for (const wrong of ['ca-only', 'mixed']) {
      await expect(open('nbds+unix://', `&tls-certificates=${folder}/${wrong}`)).rejects.toMatchObject({
        code: 'ERR_ROCE_CONNECT',
      });
    }
    await eventually(() => disk.server.counters.tlsFailures === 2);
    expect(disk.server.counters.tlsSessions).toBe(1);
  });

  test('a certificate that was withdrawn is refused', async () => {
    const withdrawn = join(folder, 'withdrawn');
    makeCertificates(withdrawn);
    await serve({ certificates: withdrawn, verifyPeer: true });
    await isUsable(await open('nbds+unix://', `&tls-certificates=${withdrawn}`));
    for (const device of devices.splice(0)) await device.close();
    await disk.close();
    const client = join(folder, 'withdrawn-client');
    copyCertificates(withdrawn, client, 'ca-cert.pem', 'client-cert.pem', 'client-key.pem');
    withdrawClient(withdrawn);
    await serve({ certificates: withdrawn, verifyPeer: true });
    await expect(open('nbds+unix://', `&tls-certificates=${client}`)).rejects.toMatchObject({
      code: 'ERR_ROCE_CONNECT',
    });
    expect(disk.server.counters).toMatchObject({ tlsSessions: 0, tlsFailures: 1 });
  });

  test('a certificate is no substitute for the key that our client expects', async () => {
    await serve({ certificates: good });
    await expect(open('nbds+unix://alice@', `&tls-psk-file=${pskFile}`)).rejects.toMatchObject({
      code: 'ERR_ROCE_CONNECT',
    });
  });

  test.each([
    ['certificates and keys', () => ({ certificates: good, pskFile }), 'ERR_ROCE_CONFLICT'],
    ['keys and verifyPeer', () => ({ pskFile, verifyPeer: true }), 'ERR_ROCE_CONFLICT'],
    ['nothing', () => ({}), 'ERR_ROCE_INVALID_ARGUMENT'],
    ['a folder that is not there', () => ({ certificates: join(folder, 'none') }), 'ERR_ROCE_IO'],
    [
      'verifyPeer without an authority',
      () => ({ certificates: `${folder}/server-only`, verifyPeer: true }),
      'ERR_ROCE_IO',
    ],
    ['a policy that is none', () => ({ pskFile, policy: 'maybe' as 'optional' }), 'ERR_ROCE_UNKNOWN_NAME'],
  ])('%s is refused when the server is opened', async (_, tls, code) => {
    await serve();
    await expect(ServedDisk.open(new MemoryDevice(SIZE), { tls: tls() })).rejects.toMatchObject({ code });
  });
});

test.each([
  ['a user alone', 'alice', /line 1 is not USER:KEY/],
  ['a key that is not hexadecimal', `alice:${'zz'.repeat(16)}`, /line 1 is not USER:KEY/],
  ['a short key', `alice:${KEY}\nbob:1234`, /line 2 has a key of 2 bytes/],
  ['a long key', `alice:${'00'.repeat(65)}`, /has a key of 65 bytes/],
  ['a comment', '# nothing', /has no key/],
])('a file of keys with %s is refused, and its keys are not shown', async (_, text, why) => {
  await serve();
  const path = join(folder, 'wrong.psk');
  writeFileSync(path, text, { mode: 0o600 });
  const opening = ServedDisk.open(new MemoryDevice(SIZE), { tls: { pskFile: path } });
  await expect(opening).rejects.toThrow(why);
  await expect(opening).rejects.not.toThrow(/zz|1234|00000/);
});
