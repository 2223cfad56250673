/**
 * Every exported function and method of `rocev2` that a program calls, with each parameter and option replaced by what it
 * cannot be: the call throws or rejects with a RoceError that names the argument, or works. It never fails otherwise, and
 * never waits for a peer. A function that this table lacks fails the test.
 */

import type { Duplex } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRateControl, rateControlSettings } from '../../src/dcqcn/index.js';
import * as api from '../../src/index.js';
import { Access, type Connection, ConnectionManager, connect, IpAddress, listen, openDevice } from '../../src/index.js';
import { bound, type Call, type Case, close, wronglyTaken } from '../support/wrong-arguments.js';

const SERVER = '127.65.3.1';
const CLIENT = '127.65.3.2';

const COMPLETION: api.WorkCompletion = {
  wrId: 0,
  status: 12,
  statusName: 'RETRY_EXC_ERR',
  opcode: 'SEND',
  byteLen: 0,
  qpn: 1,
  sourceQpn: 0,
  vendorError: 0,
};

/** Its name is that of no scheme, and it has no methods. */
function scheme(name: string) {
  return { name, summary: 'a scheme', parameters: {}, create: undefined };
}

let device: api.RdmaDevice;
let server: api.RdmaDevice;
let manager: ConnectionManager;
let connection: Connection;
let cases: readonly Case[];

beforeAll(async () => {
  [server, device] = await Promise.all([SERVER, CLIENT].map((address) => openDevice({ address, udpPort: 0 })));
  manager = await ConnectionManager.open(device);
  const listener = await listen(server, { port: 0, region: 4096 });
  const target = { host: SERVER, port: listener.port };
  connection = await connect(device, target);
  const pd = await device.createPd();
  const cq = await device.createCq(64);
  const qp = await pd.createQp({ sendCq: cq });
  const region = await pd.regMr(4096, Access.REMOTE_ALL);
  const buffer = Buffer.alloc(64);
  const wait = { timeoutMs: 20 };
  const shape = {
    region: 64,
    mtu: 1024,
    messageBytesMax: 64,
    receiveDepth: 4,
    timeout: 14,
    retryCnt: 7,
    totalTimeout: 22,
  };
  const common = {
    ...shape,
    recovery: 'go-back-n',
    rateControl: { name: 'none' },
    allowForeignGid: false,
    secure: 'off',
  };
  const cm = {
    privateData: buffer.subarray(0, 8),
    responderResources: 1,
    initiatorDepth: 1,
    rnrRetryCount: 7,
    minRnrTimer: 12,
  };
  cases = [
    {
      name: 'openDevice',
      call: openDevice as Call,
      undo: close,
      args: [
        {
          address: CLIENT,
          udpPort: 0,
          engine: 'inline',
          spin: true,
          native: 'auto',
          io: 'dgram',
          seed: 1,
          loss: 'random=0',
          extensions: [],
          estats: false,
          secure: 'off',
        },
      ],
    },
    {
      name: 'listen',
      call: listen as Call,
      undo: close,
      args: [
        server,
        { ...common, port: 0, host: SERVER, maxConnections: 4, maxConnectionsPerAddress: 4, closesConnections: true },
      ],
    },
    {
      name: 'connect',
      call: connect as Call,
      undo: close,
      args: [device, { ...common, ...target, ...wait, busyTimeoutMs: 0 }],
    },
    {
      name: 'ConnectionManager.open',
      call: ConnectionManager.open as Call,
      undo: close,
      args: [
        server,
        {
          timing: { responseTimeout: 20, packetLifetime: 16, maxRetries: 1 },
          limits: {
            endpoints: 8,
            halfOpen: 8,
            halfOpenPerAddress: 8,
            connectionsPerAddress: 8,
            timewaitPerAddress: 8,
            halfOpenMs: 100,
          },
          claimedAddress: 'source',
          dscp: 0,
        },
      ],
    },
    { name: 'ConnectionManager.listen', call: bound(manager, 'listen'), undo: close, args: [9, { backlog: 4 }] },
    {
      name: 'ConnectionManager.listenForDatagrams',
      call: bound(manager, 'listenForDatagrams'),
      undo: close,
      args: [9, { backlog: 4 }],
    },
    {
      name: 'ConnectionManager.connect',
      call: bound(manager, 'connect'),
      args: [SERVER, 9, qp, { ...cm, ...wait, pathMtu: 1024, retryCount: 7 }],
    },
    {
      name: 'ConnectionManager.resolve',
      call: bound(manager, 'resolve'),
      args: [SERVER, 9, pd, { ...wait, privateData: buffer.subarray(0, 8) }],
    },
    { name: 'Connection.send', call: bound(connection, 'send'), args: [buffer, { ...wait, immediate: 1 }] },
    { name: 'Connection.receive', call: bound(connection, 'receive'), args: [{ ...wait, view: false }] },
    { name: 'Connection.write', call: bound(connection, 'write'), args: [buffer, 0, wait] },
    { name: 'Connection.read', call: bound(connection, 'read'), args: [64, 0, wait] },
    { name: 'Connection.fetchAdd', call: bound(connection, 'fetchAdd'), args: [0, 1n, wait] },
    { name: 'Connection.compareSwap', call: bound(connection, 'compareSwap'), args: [0, 1n, 2n, wait] },
    { name: 'Connection.register', call: bound(connection, 'register'), undo: close, args: [64, Access.LOCAL_WRITE] },
    { name: 'Connection.peerClosed', call: bound(connection, 'peerClosed'), args: [wait] },
    { name: 'Listener.accept', call: bound(listener, 'accept'), undo: close, args: [wait] },
    { name: 'RdmaDevice.createCq', call: bound(device, 'createCq'), undo: close, args: [16] },
    { name: 'RdmaDevice.allocate', call: bound(device, 'allocate'), args: [16] },
    { name: 'ProtectionDomain.regMr', call: bound(pd, 'regMr'), undo: close, args: [64, 1, { iova: 0n }] },
    { name: 'ProtectionDomain.allocFastRegMr', call: bound(pd, 'allocFastRegMr'), undo: close, args: [64] },
    { name: 'ProtectionDomain.allocMw', call: bound(pd, 'allocMw'), undo: close, args: [1] },
    { name: 'ProtectionDomain.createSrq', call: bound(pd, 'createSrq'), undo: close, args: [{ depth: 4, maxSge: 1 }] },
    {
      name: 'ProtectionDomain.createQp',
      call: bound(pd, 'createQp'),
      undo: close,
      args: [
        {
          sendCq: cq,
          recvCq: cq,
          type: 'RC',
          maxSendWr: 4,
          maxRecvWr: 4,
          maxSendSge: 1,
          maxRecvSge: 1,
          maxInlineBytes: 0,
          signalAll: false,
        },
      ],
    },
    {
      name: 'ProtectionDomain.createAh',
      call: bound(pd, 'createAh'),
      undo: close,
      args: [server.address, { udpPort: 4791, dscp: 0 }],
    },
    { name: 'CompletionQueue.poll', call: bound(cq, 'poll'), args: [4] },
    { name: 'CompletionQueue.wait', call: bound(cq, 'wait'), args: [{ ...wait, solicitedOnly: false }] },
    { name: 'CompletionQueue.next', call: bound(cq, 'next'), args: [wait] },
    {
      name: 'QueuePair.modify',
      call: bound(qp, 'modify'),
      args: [{ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: 0 }],
    },
    {
      name: 'QueuePair.postSend',
      call: bound(qp, 'postSend'),
      args: [
        {
          opcode: 'RDMA_WRITE',
          wrId: 1,
          signaled: true,
          fence: false,
          inline: undefined,
          solicited: false,
          sges: [region.sge(0, 8)],
          remoteAddr: 0n,
          rkey: 1,
        },
      ],
    },
    { name: 'QueuePair.postRecv', call: bound(qp, 'postRecv'), args: [{ wrId: 1, sges: [region.sge(0, 8)] }] },
    { name: 'Connection.messages', call: bound(connection, 'messages'), args: [{ ...wait, view: false }] },
    { name: 'Listener.connections', call: bound(listener, 'connections'), args: [wait] },
    { name: 'CompletionQueue.completions', call: bound(cq, 'completions'), args: [wait] },
    { name: 'MemoryRegion.sge', call: bound(region, 'sge'), args: [0, 8] },
    { name: 'MemoryRegion.slice', call: bound(region, 'slice'), args: [0, 8] },
    { name: 'IpAddress.parse', call: IpAddress.parse as Call, args: [SERVER] },
    { name: 'IpAddress.fromBytes', call: IpAddress.fromBytes as Call, args: [Buffer.from([127, 0, 0, 1])] },
    { name: 'warmUp', call: api.warmUp as Call, args: [device, { durationMs: 1 }] },
    { name: 'startDatagrams', call: api.startDatagrams as Call, args: [qp] },
    {
      name: 'Connection.stream',
      call: bound(connection, 'stream'),
      args: [{ highWaterMark: 1 }],
      undo: (stream: Duplex) => stream.on('error', () => {}), // The connection closes under it.
    },
    { name: 'senderInGrh', call: api.senderInGrh, args: [Buffer.alloc(40)] },
    { name: 'statusName', call: api.statusName, args: [0] },
    { name: 'statusText', call: api.statusText, args: [0] },
    { name: 'checkCompletion', call: api.checkCompletion, args: [COMPLETION] },
    { name: 'describeCompletion', call: api.describeCompletion, args: [COMPLETION] },
    { name: 'registerRateControl', call: api.registerRateControl as Call, args: [scheme('rate-control')] },
    { name: 'registerRecovery', call: api.registerRecovery as Call, args: [scheme('recovery')] },
    { name: 'rateControlSettings', call: rateControlSettings as Call, args: [{ name: 'dcqcn', linkRateBps: 1e9 }] },
    { name: 'createRateControl', call: createRateControl as Call, args: [{ name: 'dcqcn', linkRateBps: 1e9 }] },
  ];
}, 60_000);
afterAll(async () => {
  await manager.close();
  await Promise.all([device, server].map((one) => one.close()));
});

describe('arguments that cannot be', () => {
  it('are refused with a RoceError', async () => {
    expect(await wronglyTaken(cases)).toEqual([]);
  }, 600_000);
});

const TAKE_NOTHING = new Set(['rateControlNames', 'recoveryNames']);

it('every exported function is called', () => {
  const functions = Object.entries(api).filter(([name, value]) => typeof value === 'function' && /^[a-z]/.test(name));
  const called = new Set(cases.map(({ name }) => name));
  expect(functions.map(([name]) => name).filter((name) => !called.has(name) && !TAKE_NOTHING.has(name))).toEqual([]);
});
