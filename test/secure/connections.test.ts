/** Secure connections on real sockets, both engines: who is let in, what is told to who is not, and that packets are protected. */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../../packages/cli/test/run-in-process.js';
import type { ConnectOptions, DeviceOptions, ListenOptions, SecureOptions } from '../../src/index.js';
import { isPsp, pspVersion } from '../../src/packet/psp.js';
import { CaptureReader } from '../../src/port/capture/capture-reader.js';
import { udpOf } from '../../src/port/capture/udp-in-capture.js';
import { builtApi, isBuilt } from '../support/built-api.js';
import { hasOpenssl } from '../support/certificates.js';
import { HAS_KOFFI } from '../support/has-koffi.js';

/** The thread of a NIC runs what was built. */
const { ConnectionManager, connect, listen, openDevice } = isBuilt
  ? await builtApi()
  : await import('../../src/index.js');

const [SERVER, CLIENT] = ['127.0.0.1', '127.0.0.2'];
const key = (byte: number) => new Uint8Array(32).fill(byte);
const ALICE = { identity: 'alice', key: key(1) };
const BOB = { identity: 'bob', key: key(2) };

const closing: Array<{ close(): Promise<void> }> = [];
afterEach(async () => {
  for (const one of closing.splice(0).reverse()) await one.close();
});

async function device(address: string, secure: DeviceOptions['secure'], options: Partial<DeviceOptions> = {}) {
  const made = await openDevice({ address, udpPort: 0, ...(secure !== undefined && { secure }), ...options });
  closing.push(made);
  return made;
}

interface Ends {
  readonly server?: SecureOptions | 'off';
  readonly client?: SecureOptions | 'off';
  readonly listen?: Partial<ListenOptions>;
  readonly connect?: Partial<ConnectOptions>;
  readonly engine?: Partial<DeviceOptions>;
}

async function connected({ server, client, engine, ...options }: Ends) {
  const ofServer = await device(SERVER, server, engine);
  const ofClient = await device(CLIENT, client, engine);
  const listener = await listen(ofServer, { port: 0, region: 65_536, ...options.listen });
  closing.push(listener);
  const refusals: string[] = [];
  listener.events.on('REFUSED', ({ reason, error }) => refusals.push(`${reason}: ${error.message}`));
  const both = () =>
    Promise.all([
      listener.accept({ timeoutMs: 5000 }),
      connect(ofClient, { host: SERVER, port: listener.port, timeoutMs: 5000, ...options.connect }),
    ]);
  const fails = () =>
    connect(ofClient, { host: SERVER, port: listener.port, timeoutMs: 5000, ...options.connect }).then(
      (connection) => connection.receive({ timeoutMs: 1000 }).then(String, String),
      (error) => String(error),
    );
  return { server: ofServer, client: ofClient, listener, refusals, both, fails };
}

const REQUIRED = { server: { psk: [BOB, ALICE] }, client: { psk: ALICE } } as const satisfies Ends;

describe.each([
  ['inline, node:dgram', { io: 'dgram' }],
  ['inline, node:dgram without koffi', { native: 'off' }],
  ['inline, sendmmsg', { io: 'mmsg' }],
  ['a worker', { engine: 'worker' }],
] as const)('%s', (_, engine) => {
  it.skipIf(('engine' in engine && !isBuilt) || ('io' in engine && engine.io === 'mmsg' && !HAS_KOFFI))(
    'messages, WRITEs and READs arrive, protected; each end knows the other',
    async () => {
      const { server, client, both } = await connected({ ...REQUIRED, engine });
      const [at, from] = await both();
      expect([at.agreement.peerIdentity, from.agreement.peerIdentity]).toEqual(['alice', 'alice']);
      await from.send(Buffer.from('hello'));
      expect((await at.receive()).data.toString()).toBe('hello');
      const data = client.allocate(60_000).fill(7);
      await from.write(data);
      expect((await from.read(60_000)).equals(data)).toBe(true);
      const [a, b] = [server.counters(), client.counters()];
      expect(a.secure_rx_opened).toBeGreaterThan(15);
      expect(b.secure_rx_opened).toBeGreaterThan(15);
      expect([a.secure_rx_opened, b.secure_rx_opened]).toEqual([a.rx_packets, b.rx_packets]);
      expect([a.rx_icrc_errors, b.secure_tx_drop_no_association, a.secure_drop_plain]).toEqual([0, 0, 0]);
      await from.close();
      await at.close();
    },
  );
});

describe('ciphers: the stronger of both ends is used', () => {
  it.each([
    [undefined, undefined, 'aes-128-gcm', 0],
    ['aes-256-gcm', undefined, 'aes-256-gcm', 1],
    ['aes-128-gcm', 'aes-256-gcm', 'aes-256-gcm', 1],
    ['aes-256-gcm', 'aes-256-gcm', 'aes-256-gcm', 1],
  ] as const)('%s and %s', async (ofServer, ofClient, agreed, version) => {
    const file = join(mkdtempSync(join(tmpdir(), 'rocev2-cipher-')), 'a.pcapng');
    const secureWith = (cipher?: SecureOptions['cipher']) => ({ psk: ALICE, ...(cipher !== undefined && { cipher }) });
    const server = await device(SERVER, secureWith(ofServer));
    const client = await device(CLIENT, secureWith(ofClient), { pcap: file });
    const listener = await listen(server, { port: 0, region: 65_536 });
    closing.push(listener);
    const [at, from] = await Promise.all([
      listener.accept({ timeoutMs: 5000 }),
      connect(client, { host: SERVER, port: listener.port, timeoutMs: 5000 }),
    ]);
    expect([at.agreement.cipher, from.agreement.cipher]).toEqual([agreed, agreed]);
    const data = client.allocate(60_000).fill(7);
    await from.write(data);
    expect((await from.read(60_000)).equals(data)).toBe(true);
    for (const one of closing.splice(0).reverse()) await one.close();
    const protectedPackets = [...new CaptureReader(readFileSync(file))].map((captured) => udpOf(captured)!.payload);
    expect(new Set(protectedPackets.map((payload) => pspVersion(payload, 0)))).toEqual(new Set([version]));
    rmSync(join(file, '..'), { recursive: true });
  });

  it('one that there is not is refused', async () => {
    await expect(device(SERVER, { psk: ALICE, cipher: 'aes-256-gmc' as 'aes-256-gcm' })).rejects.toMatchObject({
      code: 'ERR_ROCE_UNKNOWN_NAME',
      message: expect.stringContaining("secure.cipher is 'aes-256-gmc'"),
    });
  });
});

it.each(isBuilt ? (['inline', 'worker'] as const) : (['inline'] as const))(
  'telemetry tells who the peer is, the cipher, the SPIs and what became of packets; of a plain connection it tells nothing, %s',
  async (engine) => {
    for (const ends of [REQUIRED, {}] as const) {
      const { server, client, both } = await connected({ ...ends, engine: { estats: true, engine } });
      const [at, from] = await both();
      await from.write(client.allocate(20_000));
      const [ofServer, ofClient] = await Promise.all(
        [server, client].map(async ({ address }) => {
          const { stdout } = await run(['estats', 'top', '--endpoint', address.text, '--once', '--json']);
          return JSON.parse(stdout).endpoints[0].qps[0].protection;
        }),
      );
      if ('server' in ends) {
        expect(ofServer).toMatchObject({ peer: 'alice', cipher: 'aes-128-gcm' });
        expect([ofClient.sendSpi, ofClient.receiveSpi]).toEqual([ofServer.receiveSpi, ofServer.sendSpi]);
        expect(ofServer).toMatchObject({ replayed: 0, forged: 0, rekeys: 0 });
        expect(ofServer.opened).toBeGreaterThanOrEqual(5);
        expect(ofClient.sealed).toBeGreaterThanOrEqual(ofServer.opened);
        const { stdout } = await run(['estats', 'top', '--endpoint', CLIENT, '--once']);
        expect(stdout).toMatch(
          /protected: alice, aes-128-gcm, SPI 0x[0-9a-f]+ out, 0x[0-9a-f]+ in; sealed \d+, opened \d+, keys changed 0 times/,
        );
      } else expect([ofServer, ofClient]).toEqual([undefined, undefined]);
      await from.close();
      await at.close();
      for (const one of closing.splice(0).reverse()) await one.close();
    }
  },
);

it('over IPv6, several connections of one peer one after another and side by side', async () => {
  const server = await device('::1', { psk: ALICE });
  const client = await device('::1', { psk: ALICE });
  const listener = await listen(server, { port: 0, region: 4096 });
  closing.push(listener);
  const connectOne = async () => {
    const [at, from] = await Promise.all([listener.accept(), connect(client, { host: '::1', port: listener.port })]);
    await from.write(Buffer.alloc(4096, 3));
    return { at, from };
  };
  const first = await connectOne();
  const second = await connectOne();
  await second.from.close();
  await second.at.close();
  await first.from.write(Buffer.alloc(4096, 4));
  const third = await connectOne();
  await third.from.send(Buffer.from('x'));
  expect((await third.at.receive()).data.length).toBe(1);
  await first.from.send(Buffer.from('y'));
  expect((await first.at.receive()).data.toString()).toBe('y');
});

describe('who is not let in', () => {
  it.each<[string, Ends, RegExp, RegExp]>([
    [
      'a plain client',
      { ...REQUIRED, client: 'off' },
      /packets have to be protected here/,
      /refused_mismatch: .*no secure mode/,
    ],
    [
      'a plain server',
      { ...REQUIRED, server: 'off' },
      /has no secure mode/,
      /refused_mismatch: the peer asks for secure mode/,
    ],
    [
      'another key',
      { ...REQUIRED, client: { psk: { identity: 'alice', key: key(9) } } },
      /no secure connection/,
      /refused_untrusted/,
    ],
    ['an unknown identity', { ...REQUIRED, server: { psk: BOB } }, /no secure connection/, /refused_untrusted/],
    [
      'who is not allowed',
      { ...REQUIRED, listen: { allow: ['bob'] } },
      /closed|ECONNRESET/,
      /refused_untrusted: 'alice' is not allowed/,
    ],
  ])('%s: both ends are told why', async (_, ends, told, counted) => {
    const { listener, refusals, fails, server } = await connected(ends);
    expect(await fails()).toMatch(told);
    await expect.poll(() => refusals.join()).toMatch(counted);
    expect(listener.counters().established).toBe(0);
    expect(server.counters().rx_packets).toBe(0);
  });

  it.each<[string, () => Promise<unknown>, RegExp]>([
    ['no credentials', () => device(SERVER, {}), /secure has no credentials/],
    [
      'a short key',
      () =>
        device(SERVER, { psk: { identity: 'a', key: key(1).subarray(8) } }).then(() =>
          device(SERVER, { psk: { identity: 'a', key: new Uint8Array(8) } }),
        ),
      /needs a key of 16 to 64 bytes/,
    ],
    ['half of the certificates', () => device(SERVER, { cert: 'x' }), /need cert, key and ca/],
    [
      'shared memory',
      () => device(SERVER, { psk: ALICE }, { io: 'shm' }),
      HAS_KOFFI ? /shared memory shows packets/ : /koffi/,
    ],
    ['RDMA CM', async () => ConnectionManager.open(await device(SERVER, { psk: ALICE })), /RDMA CM has no secure mode/],
    [
      'less than the device requires',
      async () => listen(await device(SERVER, { psk: ALICE }), { port: 0, secure: 'prefer' }),
      /the device requires protection/,
    ],
    [
      'more than the device has',
      async () => listen(await device(SERVER, 'off'), { port: 0, secure: 'require' }),
      /needs a device that has credentials/,
    ],
  ])('%s is refused before anything is opened', async (_, open, told) => {
    await expect(open()).rejects.toThrow(told);
  });
});

describe('where protection is preferred', () => {
  const preferred = { psk: ALICE, mode: 'prefer' } as const;

  it.each<[string, Ends, boolean]>([
    ['both can', { server: preferred, client: preferred }, true],
    ['the client cannot', { server: preferred, client: 'off' }, false],
    ['the server cannot', { server: 'off', client: preferred }, false],
  ])('%s', async (_, ends, isProtected) => {
    const { client, server, both } = await connected(ends);
    const [at, from] = await both();
    await from.write(Buffer.alloc(1000, 1));
    expect(from.agreement.peerIdentity !== undefined).toBe(isProtected);
    expect(server.counters().secure_rx_opened > 0).toBe(isProtected);
    expect(client.counters().rx_packets).toBeGreaterThan(0);
    await from.close();
    await at.close();
  });
});

it('the wire shows PSP and nothing else', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rocev2-secure-'));
  const pcap = join(folder, 'wire.pcapng');
  const server = await device(SERVER, { psk: ALICE }, { pcap });
  const client = await device(CLIENT, { psk: ALICE });
  const listener = await listen(server, { port: 0, region: 4096 });
  const [, from] = await Promise.all([listener.accept(), connect(client, { host: SERVER, port: listener.port })]);
  await from.write(Buffer.alloc(4096, 0x5a));
  await client.close();
  await server.close();
  const bytes = readFileSync(pcap);
  expect(bytes.includes(Buffer.alloc(64, 0x5a))).toBe(false);
  const twin = Buffer.alloc(200);
  twin.set([17, 1, 5, 1]);
  expect(isPsp(twin, 0, 200)).toBe(true);
  expect(bytes.includes(Buffer.from([17, 1, 5, 1]))).toBe(true);
  rmSync(folder, { recursive: true });
});

const KEY_OF = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

describe.skipIf(!hasOpenssl())('certificates', () => {
  let folder: string;
  const of = (name: string, ca = 'ca'): SecureOptions => ({
    cert: readFileSync(join(folder, `${name}.pem`), 'utf8'),
    key: readFileSync(join(folder, `${name}.key`), 'utf8'),
    ca: readFileSync(join(folder, `${ca}.pem`), 'utf8'),
  });
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
  /** Valid for so many days; -1: expired yesterday. */
  const sign = (name: string, ca: string, names: string, days: string) => {
    const extensions = join(folder, `${name}.ext`);
    writeFileSync(extensions, `subjectAltName=${names}\nbasicConstraints=CA:FALSE\n`);
    openssl('req', ...KEY_OF, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
    const by = ['-CA', `${ca}.pem`, '-CAkey', `${ca}.key`, '-CAcreateserial'];
    openssl('x509', '-req', '-in', `${name}.csr`, ...by, '-extfile', extensions, '-days', days, '-out', `${name}.pem`);
  };

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-certs-'));
    for (const ca of ['ca', 'other']) {
      openssl(
        'req',
        '-x509',
        ...KEY_OF,
        '-keyout',
        `${ca}.key`,
        '-out',
        `${ca}.pem`,
        '-subj',
        `/CN=${ca}`,
        '-days',
        '2',
      );
    }
    sign('server', 'ca', `IP:${SERVER},DNS:storage.example`, '2');
    sign('client', 'ca', 'DNS:client.example', '2');
    sign('elsewhere', 'ca', 'IP:192.0.2.9', '2');
    sign('stranger', 'other', 'DNS:client.example', '2');
    sign('expired', 'ca', `IP:${SERVER}`, '-1');
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('of one root connect; names are what both know each other by', async () => {
    const { both } = await connected({
      server: of('server'),
      client: of('client'),
      listen: { allow: ['client.example'] },
    });
    const [at, from] = await both();
    expect([at.agreement.peerIdentity, from.agreement.peerIdentity]).toEqual(['client.example', 'server']);
    await from.write(Buffer.alloc(1000));
  });

  it.each<[string, () => Ends, RegExp]>([
    [
      'of another name',
      () => ({ server: of('elsewhere'), client: of('client') }),
      /IP: 127.0.0.1 is not in the cert's list/,
    ],
    ['that has expired', () => ({ server: of('expired'), client: of('client') }), /certificate has expired/],
    ['of another root', () => ({ server: of('server'), client: of('stranger', 'ca') }), /alert|closed/],
    [
      'that is not allowed',
      () => ({ server: of('server'), client: of('client'), connect: { allow: ['storage-2'] } }),
      /'server', 'IP|is not allowed/,
    ],
  ])('%s ends before any data', async (_, ends, told) => {
    const { fails, server, client } = await connected(ends());
    expect(await fails()).toMatch(told);
    expect([server.counters().rx_packets, client.counters().rx_packets]).toEqual([0, 0]);
  });
});
