/** Storage in secure mode on real sockets: what an eavesdropper sees over TCP, failover between protected transports, and who is refused with which words. */

import { once } from 'node:events';
import { createServer, connect as dialTcp, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { NvmeTargetServer } from '../../../packages/nvme/src/live/nvme-target-server.js';
import { openNvme } from '../../../packages/nvme/src/live/open-nvme.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { StorageClient, type StorageClientOptions } from '../../../src/storage-rpc/live/storage-client.js';
import { StorageServer } from '../../../src/storage-rpc/live/storage-server.js';
import { SuDuplex } from '../../../src/storage-rpc/live/su-duplex.js';
import { SuEndpoint } from '../../../src/storage-rpc/live/su-endpoint.js';
import { SuStreamClient } from '../../../src/storage-rpc/live/su-stream-client.js';
import { SuStreamServer } from '../../../src/storage-rpc/live/su-stream-server.js';
import { openDevice } from '../../../src/verbs/open-device.js';
import type { SecureOptions } from '../../../src/verbs/security.js';
import { eventually } from '../../support/eventually.js';

const HOST = '127.55.0.7';
const PEER = '127.55.0.8';
const key = (byte: number) => new Uint8Array(32).fill(byte);
const ALICE = { psk: { identity: 'alice', key: key(1) } };
const BOTH = { psk: [{ identity: 'bob', key: key(2) }, ALICE.psk] };
const MARKER = Buffer.from('this must not be read on the way; ');
const DISK_BYTES = 1 << 20;

const closers: Array<() => Promise<unknown>> = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function device(address: string, secure: SecureOptions | undefined) {
  const made = await openDevice({ address, udpPort: 0, ...(secure !== undefined && { secure }) });
  closers.push(() => made.close());
  return made;
}

interface Ends {
  readonly server?: SecureOptions;
  readonly client?: SecureOptions;
  /** Default: both. */
  readonly transport?: 'rdma' | 'tcp';
}

/** A server, and how its client connects: through a tap that keeps every byte over TCP. */
async function rig({ server: ofServer, client: ofClient, transport }: Ends) {
  const notices: string[] = [];
  const server = await StorageServer.open({
    disks: [new MemoryDevice(DISK_BYTES)],
    host: HOST,
    port: 0,
    device: await device(HOST, ofServer),
    onNotice: (notice) => notices.push(notice),
  });
  closers.push(() => server.close());
  const tap = await tapOf(server.port);
  const nic = transport === 'tcp' ? undefined : await device(PEER, ofClient);
  const of = nic === undefined ? ofClient !== undefined && { secure: ofClient } : { device: nic };
  const connect = async (more: Partial<StorageClientOptions> = {}) => {
    const client = await StorageClient.connect({
      host: HOST,
      port: tap.port,
      tcp: transport !== 'rdma',
      path: { holdDownNs: 20e6, holdDownMaxNs: 20e6 },
      ...of,
      ...more,
    });
    closers.push(() => client.close());
    return client;
  };
  return { server, connect, tap, nic, notices };
}

/** Forwards connections to a port of the server, and keeps what passes. */
async function tapOf(port: number): Promise<{ readonly port: number; seen(): Buffer }> {
  const passed: Buffer[] = [];
  const tap: Server = createServer((near) => {
    const far = dialTcp({ host: HOST, port, localAddress: PEER }); // Both ends see the addresses of the devices.
    for (const [from, to] of [
      [near, far],
      [far, near],
    ]) {
      from.on('data', (bytes: Buffer) => passed.push(bytes));
      from.on('data', (bytes: Buffer) => to.write(bytes));
      from.on('end', () => to.end());
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
    }
  });
  tap.listen({ host: HOST, port: 0 });
  await once(tap, 'listening');
  closers.push(async () => tap.close());
  return { port: (tap.address() as { port: number }).port, seen: () => Buffer.concat(passed) };
}

async function writeAndRead(client: StorageClient, at: number): Promise<void> {
  const data = Buffer.alloc(64 << 10, MARKER);
  await client.disk.write(at, data);
  const back = Buffer.alloc(data.length);
  await client.disk.read(at, back.length, back);
  expect(back.equals(data)).toBe(true);
}

describe('a disk whose server and client have keys', () => {
  it('is protected over RDMA, over TCP after a failover, and over RDMA again', async () => {
    const { server, connect, tap, nic } = await rig({ server: BOTH, client: ALICE });
    const events: string[] = [];
    const client = await connect({ onEvent: ({ type }) => events.push(type) });
    expect(client.report.sessions).toEqual({ rdma: 1, tcp: 0 });
    await writeAndRead(client, 0);
    client.failover();
    await writeAndRead(client, 1 << 17);
    await eventually(() => events.includes('return'));
    await writeAndRead(client, 1 << 18);
    expect(events[0]).toBe('failover');
    expect(tap.seen().length).toBeGreaterThan(0);
    expect(tap.seen().includes(MARKER)).toBe(false);
    const counters = nic!.counters();
    expect(counters).toMatchObject({ secure_drop_plain: 0, secure_rx_opened: counters.rx_packets });
    expect(server.untrusted).toBe(0);
  });

  it.each([
    ['keys', { server: BOTH, client: ALICE }, false],
    ['no keys, as the negative twin', {}, true],
  ] as const)('over TCP alone, with %s', async (_, ends, isReadable) => {
    const { connect, tap } = await rig({ ...ends, transport: 'tcp' });
    await writeAndRead(await connect(), 0);
    expect(tap.seen().includes(MARKER)).toBe(isReadable);
  });

  it("with 'prefer', takes plain peers, too", async () => {
    const { connect, tap } = await rig({ client: { mode: 'prefer', ...ALICE }, transport: 'tcp' });
    await writeAndRead(await connect(), 0);
    const plain = await rig({ server: { mode: 'prefer', ...BOTH }, transport: 'tcp' });
    await writeAndRead(await plain.connect(), 0);
    expect([tap, plain.tap].map(({ seen }) => seen().includes(MARKER))).toEqual([true, true]);
    const both = await rig({ server: { mode: 'prefer', ...BOTH }, client: { mode: 'prefer', ...ALICE } });
    await writeAndRead(await both.connect(), 0);
    expect(both.nic!.counters().secure_rx_opened).toBeGreaterThan(0);
  });
});

describe('who is not let in', () => {
  const noSecureMode = /has no secure mode, and packets have to be protected/;
  it.each([
    ['a plain client, RDMA', { server: BOTH, transport: 'rdma' }, /packets have to be protected here/],
    ['a plain client, TCP', { server: BOTH, transport: 'tcp' }, /packets have to be protected here/],
    ['a client whose server is plain, RDMA', { client: ALICE, transport: 'rdma' }, noSecureMode],
    ['a client whose server is plain, TCP', { client: ALICE, transport: 'tcp' }, noSecureMode],
    [
      'a wrong key',
      { server: BOTH, client: { psk: { identity: 'alice', key: key(9) } } },
      /do both ends have the same key/,
    ],
    [
      'an unknown name',
      { server: BOTH, client: { psk: { identity: 'eve', key: key(1) } } },
      /do both ends have the same key/,
    ],
    [
      'a name that is not allowed',
      { server: { ...BOTH, allow: ['bob'] }, client: ALICE, transport: 'tcp' },
      /ended the connection behind the handshake \(does it let this end in/,
    ],
  ] as const)('%s', async (_, ends: Ends, why) => {
    const { server, connect, notices } = await rig(ends);
    const refused = await connect().then(
      () => 'connected',
      (error) => `${error.code}: ${error.message} (${error.hint})`,
    );
    expect(refused).toMatch(/^ERR_ROCE_(CONNECT|MISMATCH): /);
    expect(refused).toMatch(why);
    expect(server.connections).toBe(0);
    expect(server.counters.executed).toBe(0);
    if (ends.server === undefined) return;
    expect(server.untrusted).toBeGreaterThan(0);
    expect(notices.filter((notice) => /^a client at .* was refused: /.test(notice))).toHaveLength(1);
  });

  it('credentials beside a device are refused', async () => {
    const { connect } = await rig({ server: BOTH, client: ALICE });
    await expect(connect({ secure: ALICE })).rejects.toMatchObject({ code: 'ERR_ROCE_CONFLICT' });
  });
});

describe('sU between ends with keys', () => {
  const endpoint = async (address: string, secure?: SecureOptions) => {
    const made = await SuEndpoint.open(await device(address, secure));
    closers.push(() => made.close());
    return made;
  };

  it('a stream goes on over protected TCP and comes back', async () => {
    const accepted: SuDuplex[] = [];
    const server = await SuStreamServer.open({
      host: HOST,
      port: 0,
      endpoint: await endpoint(HOST, BOTH),
      onStream: (stream) => accepted.push(new SuDuplex(stream)),
    });
    closers.push(() => server.close());
    const tap = await tapOf(server.port);
    const events: string[] = [];
    const client = SuStreamClient.to({
      host: HOST,
      port: tap.port,
      endpoint: await endpoint(PEER, ALICE),
      path: { holdDownNs: 20e6 },
      onEvent: ({ type }) => events.push(type),
    });
    closers.push(() => client.close());
    const stream = new SuDuplex(await client.stream());
    const got: Buffer[] = [];
    accepted[0].on('error', () => {});
    accepted[0].on('data', (bytes: Buffer) => got.push(bytes));
    stream.write(MARKER);
    await eventually(() => Buffer.concat(got).length === MARKER.length);
    client.failover();
    await eventually(() => events.includes('return') || client.transports.tcp === 1);
    stream.write(MARKER);
    await eventually(() => Buffer.concat(got).length === 2 * MARKER.length);
    expect(Buffer.concat(got)).toEqual(Buffer.concat([MARKER, MARKER]));
    expect(tap.seen().includes(MARKER)).toBe(false);
  });

  it('a plain endpoint, and a plain client over TCP, are refused', async () => {
    const secured = await endpoint(HOST, BOTH);
    const port = await secured.listen(HOST, 0, () => {});
    await expect((await endpoint(PEER)).connect(HOST, port)).rejects.toThrow(/packets have to be protected here/);
    const server = await SuStreamServer.open({ host: HOST, port: 0, secure: BOTH, onStream: () => {} });
    closers.push(() => server.close());
    const plain = SuStreamClient.to({ host: HOST, port: server.port, giveUpNs: 1e8 });
    closers.push(() => plain.close());
    await expect(plain.stream()).rejects.toThrow();
    expect(server.untrusted).toBeGreaterThan(0);
    const known = SuStreamClient.to({ host: HOST, port: server.port, secure: ALICE });
    closers.push(() => known.close());
    expect((await known.stream()).constructor.name).toBe('SuStream');
  });
});

it('NVMe over RDMA, which connects by RDMA CM, is refused by name at both ends; nothing goes plain', async () => {
  const nqn = 'nqn.2026-01.test:secure';
  const refused = { code: 'ERR_ROCE_CONFLICT', message: expect.stringContaining('RDMA CM has no secure mode') };
  const subsystems = [{ nqn, disks: [new MemoryDevice(DISK_BYTES)] }];
  const ofTarget = await device(HOST, ALICE);
  await expect(NvmeTargetServer.open({ subsystems, devices: [ofTarget] })).rejects.toMatchObject(refused);
  const ofHost = await device(PEER, ALICE);
  await expect(openNvme({ address: HOST, nqn, device: ofHost })).rejects.toMatchObject(refused);
  expect([ofTarget, ofHost].map((nic) => nic.counters().tx_packets)).toEqual([0, 0]);
});
