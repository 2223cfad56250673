/** The rules that keep a client's memory safe from its server (storage-rpc/sk/rdma-client-channel.ts, a to e). */

import { expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import type { RemoteBuffer } from '../../../src/storage-rpc/link/remote-place.js';
import { Access } from '../../../src/verbs/access.js';
import type { SendWorkRequest } from '../../../src/verbs/send-work-request.js';
import { settle } from '../../support/virtual-time.js';
import { DISK_BYTES, pattern, Rig, readIo, writeIo } from './rig.js';

/** Changes what the server's newest connection posts. */
function tamper(rig: Rig, change: (request: SendWorkRequest) => SendWorkRequest): void {
  const { qp } = rig.rdma!.serverParts;
  const post = qp.postSend.bind(qp);
  qp.postSend = (...requests) => post(...requests.map(change));
}

/** The descriptors the server's newest connection is given. */
function watchDescriptors(rig: Rig): RemoteBuffer[] {
  const seen: RemoteBuffer[] = [];
  const { server } = rig.rdma!;
  const handle = server.onRequest;
  server.onRequest = (incoming) => {
    seen.push(incoming.request.descriptor);
    handle(incoming);
  };
  return seen;
}

/** What becomes of a WRITE by the server to memory it was once told of. */
async function attack(rig: Rig, { addr, rkey }: RemoteBuffer): Promise<'let in' | 'refused'> {
  const { qp, pd } = rig.rdma!.serverParts;
  const evil = await pd.regMr(Buffer.alloc(512, 0xee), Access.LOCAL_WRITE);
  const { req_remote_access_errors: before } = rig.pair.b.device.counters();
  qp.postSend({ opcode: 'RDMA_WRITE', sges: [evil.sge()], remoteAddr: addr, rkey, wrId: 0xffff_ffff });
  await rig.pass(1e6);
  return rig.pair.b.device.counters().req_remote_access_errors > before ? 'refused' : 'let in';
}

test('(a) a response that invalidates another key is an error of the connection', async () => {
  const rig = await Rig.create();
  const session = await rig.connected('rdma');
  const lost: string[] = [];
  session.onLost = (_, error) => void lost.push(error.message);
  const seen = watchDescriptors(rig);
  tamper(rig, (request) =>
    request.opcode === 'SEND_WITH_INV'
      ? { ...request, invalidateRkey: seen.find(({ rkey }) => rkey !== request.invalidateRkey)!.rkey }
      : request,
  );
  const outcomes = [readIo(0, Buffer.alloc(4096)), readIo(4096, Buffer.alloc(4096))].map((io) => session.submit(io));
  for (const outcome of outcomes) outcome.catch(() => {});
  await rig.pass(1e6);
  expect(lost).toHaveLength(1);
  expect(lost[0]).toContain('invalidated another key');
  expect(rig.rdma!.client.counters.bogusInvalidates).toBe(1);
  expect(session.counters.completed).toBe(0);
});

test('(a) a response that invalidates a key where none was registered is one, too', async () => {
  const rig = await Rig.create();
  const session = await rig.connected('rdma', { inlineWriteBytesMax: 0 });
  let lost = 0;
  session.onLost = () => void lost++;
  const seen = watchDescriptors(rig);
  void session.submit(readIo(0, Buffer.alloc(1 << 20))).catch(() => {});
  void session.submit({ op: 'FLUSH', offset: 0, length: 0 }).catch(() => {});
  tamper(rig, (request) =>
    request.opcode === 'SEND' ? { ...request, opcode: 'SEND_WITH_INV', invalidateRkey: seen[0].rkey } : request,
  );
  await rig.pass(5e6);
  expect(lost).toBe(1);
});

test('(b) a response that invalidates nothing is delivered after the client has done it', async () => {
  const rig = await Rig.create();
  const session = await rig.connected('rdma');
  const seen = watchDescriptors(rig);
  tamper(rig, (request) => (request.opcode === 'SEND_WITH_INV' ? { ...request, opcode: 'SEND' } : request));
  await rig.disk.write(0, pattern(4096, 1));
  const into = Buffer.alloc(4096);
  await rig.until(session.submit(readIo(0, into)));
  expect(into.equals(pattern(4096, 1))).toBe(true);
  expect(rig.rdma!.client.counters.missingInvalidates).toBe(1);
  expect(await attack(rig, seen[0])).toBe('refused');
});

test('(b) and so is one that did: the key is dead when the request is answered', async () => {
  const rig = await Rig.create();
  const session = await rig.connected('rdma');
  const seen = watchDescriptors(rig);
  await rig.until(session.submit(readIo(0, Buffer.alloc(4096))));
  expect(await attack(rig, seen[0])).toBe('refused');
});

test('the attack works while the request is under way: it is the rules that stop it', async () => {
  const disk = new MemoryDevice(DISK_BYTES);
  disk.read = () => new Promise(() => {});
  const rig = await Rig.create({ disk });
  const session = await rig.connected('rdma');
  const seen = watchDescriptors(rig);
  void session.submit(readIo(0, Buffer.alloc(4096))).catch(() => {});
  await rig.pass(1e5);
  expect(await attack(rig, seen[0])).toBe('let in');
});

test('(c) a request that is given up is withdrawn before anything else happens', async () => {
  const disk = new MemoryDevice(DISK_BYTES);
  disk.read = () => new Promise(() => {});
  const rig = await Rig.create({ disk });
  const session = await rig.connected('rdma', { ioTimeoutNs: 2e9 });
  const seen = watchDescriptors(rig);
  let lost: string | undefined;
  session.onLost = (_, error) => {
    lost = error.message;
  };
  void session.submit(readIo(0, Buffer.alloc(4096))).catch(() => {});
  while (lost === undefined) await rig.pass(1e8);
  expect(lost).toContain('not answered');
  // The channel is still open: it is LOCAL_INV that closed the memory.
  expect(await attack(rig, seen[0])).toBe('refused');
});

test('(d) after a failure all keys are gone before the memory is used again', async () => {
  const rig = await Rig.create();
  const session = await rig.connected('rdma');
  const seen = watchDescriptors(rig);
  const read = rig.disk.read.bind(rig.disk);
  let go: () => void = () => {};
  const held = new Promise<void>((resolve) => {
    go = resolve;
  });
  rig.disk.read = (...request) => held.then(() => read(...request));
  const into = Buffer.alloc(65_536);
  const outcome = session.submit(readIo(0, into));
  await rig.pass(1e5);
  session.breakConnection('a test');
  await rig.until(session.resume(await rig.dialRdma()));
  // The new connection, to the same client, with the old key.
  expect(await attack(rig, seen[0])).toBe('refused');
  session.breakConnection('its queue pair has failed');
  go();
  await rig.until(session.resume(await rig.dialRdma()));
  await rig.until(outcome);
});

test('(e) no key comes back for thousands of requests', async () => {
  const rig = await Rig.create();
  const session = await rig.connected('rdma', { inlineWriteBytesMax: 0 });
  const seen = watchDescriptors(rig);
  const data = pattern(512, 1);
  for (let i = 0; i < 2000; i++) await rig.until(session.submit(writeIo(0, data)));
  expect(new Set(seen.map(({ rkey }) => rkey)).size).toBe(2000);
  await settle();
});
