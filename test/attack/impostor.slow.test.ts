/**
 * A TLS server with a certificate of its own in place of the right one: no client sends it a byte, also with
 * NODE_TLS_REJECT_UNAUTHORIZED=0.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { connect as connectTls, createServer, type Server } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { EtcdGateway } from '../../packages/extents/src/live/etcd-gateway.js';
import { NvmeTlsKey } from '../../packages/nvme/src/auth/tls-key.js';
import { openNvme } from '../../packages/nvme/src/live/open-nvme.js';
import { SYSTEM_CLOCK } from '../../src/driver/system-clock.js';
import { connect, openDevice, type SecureOptions } from '../../src/index.js';
import { dialStream, securityOf } from '../../src/storage-rpc/live/socket-security.js';
import { clientCredentials, connectTls as connectNbd } from '../../src/storage-rpc/nbd/tls/client-tls.js';
import { hasOpenssl, makeCertificates } from '../support/certificates.js';

const HOST = '127.0.8.241';
const CLIENT = '127.0.8.242';
const psk = { identity: 'alice', key: new Uint8Array(32).fill(1) };

describe.skipIf(!hasOpenssl())('an impostor', () => {
  let folder: string;
  let server: Server;
  let port: number;
  let received = '';
  const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
  beforeAll(async () => {
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    folder = mkdtempSync(join(tmpdir(), 'impostor-'));
    makeCertificates(join(folder, 'his'));
    makeCertificates(join(folder, 'right'));
    writeFileSync(join(folder, 'keys'), `alice:${'01'.repeat(32)}\n`, { mode: 0o600 });
    const pem = (name: string) => readFileSync(join(folder, 'his', `server-${name}.pem`));
    server = createServer({ key: pem('key'), cert: pem('cert') }, (socket) => {
      socket
        .on('error', () => {})
        .on('data', (bytes) => {
          received += bytes.toString('latin1');
        });
    });
    server.on('tlsClientError', () => {});
    await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
    ({ port } = server.address() as AddressInfo);
  });
  afterAll(() => {
    if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before;
    server.close();
    rmSync(folder, { recursive: true });
  });
  beforeEach(() => {
    received = '';
  });

  const pem = (name: string) => readFileSync(join(folder, 'right', `${name}.pem`), 'utf8');
  const certificates = () => ({ cert: pem('client-cert'), key: pem('client-key'), ca: pem('ca-cert') });
  async function connectDevice(secure: SecureOptions): Promise<void> {
    await using device = await openDevice({ address: CLIENT, udpPort: 0, secure });
    await connect(device, { host: HOST, port, timeoutMs: 5000 });
  }
  async function openEtcd(): Promise<void> {
    const gateway = new EtcdGateway([`https://${HOST}:${port}`], SYSTEM_CLOCK, 5000, { ca: pem('ca-cert') });
    await gateway.ask('/v3/kv/range', { key: '' }).finally(() => gateway.close());
  }
  async function startNbdTls(tls: Partial<Parameters<typeof clientCredentials>[0]>): Promise<void> {
    const credentials = await clientCredentials({ hostname: HOST, verifyPeer: true, ...tls });
    const secure = await connectNbd(connectTcp(port, HOST), credentials);
    secure.write('IHAVEOPT');
  }

  it.each<[string, () => Promise<unknown>]>([
    ['a connection with a key', () => connectDevice({ psk })],
    ['a connection with a certificate', () => connectDevice(certificates())],
    ['storage over TCP with a key', () => dialStream(HOST, port, securityOf(undefined, { psk }))],
    ['NBD with a key', () => startNbdTls({ pskFile: join(folder, 'keys'), user: 'alice' })],
    ['NBD with certificates', () => startNbdTls({ certificates: join(folder, 'right') })],
    [
      'an NVMe host',
      () =>
        openNvme({
          address: HOST,
          port,
          nqn: 'nqn.2026-11.example:disk',
          hostNqn: 'nqn.2026-11.example:host',
          tlsKey: NvmeTlsKey.format(Buffer.alloc(32, 5)),
        }),
    ],
    ['etcd', openEtcd],
  ])('gets nothing from %s', async (_, open) => {
    await expect(open()).rejects.toThrow();
    expect(received).toBe('');
  });

  it('is believed by a client that follows the environment', async () => {
    const socket = connectTls({ host: HOST, port }, () => socket.end('hello'));
    await expect.poll(() => received).toBe('hello');
  });
});
