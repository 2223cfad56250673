/**
 * Every exported function and method of `rocev2` that a program calls, with each parameter and option replaced by what it
 * cannot be: the call throws or rejects with a RoceError that names the argument, or works. It never fails otherwise, and
 * never waits for a peer. A function that this table lacks fails the test.
 */

import { setTimeout as delay } from 'node:timers/promises'; // timer: a bound for calls that wait for a peer
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as api from '../../src/index.js';
import {
  Access,
  type Connection,
  ConnectionManager,
  connect,
  IpAddress,
  listen,
  openDevice,
  RoceError,
} from '../../src/index.js';

const SERVER = '127.65.3.1';
const CLIENT = '127.65.3.2';

/** Longer than the waits that the table passes. */
const WAIT_MS = 400;

const BAD: ReadonlyArray<readonly [string, unknown]> = [
  ['null', null],
  ['text', 'x'],
  ['an empty text', ''],
  ['NaN', Number.NaN],
  ['-1', -1],
  ['1.5', 1.5],
  ['1e300', 1e300],
  ['2^53', 2 ** 53],
  ['-1n', -1n],
  ['2^64', 2n ** 64n],
  ['true', true],
  ['an empty object', {}],
  ['an empty list', []],
  ['a function', () => {}],
  ['a symbol', Symbol('x')],
];

type Call = (...args: never[]) => unknown;
/** Valid arguments. An object of options has every option that takes a value of the program. */
interface Case {
  readonly name: string;
  readonly call: Call;
  readonly args: readonly unknown[];
  /** Ends what a call that worked has made. */
  readonly undo?: (value: never) => unknown;
}

const close = (thing: { close?: () => unknown } | undefined) => thing?.close?.();

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
  const bound = <O extends object, K extends keyof O>(object: O, method: K) => (object[method] as Call).bind(object);
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
      args: [server, { ...common, port: 0, host: SERVER, maxConnections: 4, maxConnectionsPerAddress: 4 }],
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
    { name: 'MemoryRegion.sge', call: bound(region, 'sge'), args: [0, 8] },
    { name: 'MemoryRegion.slice', call: bound(region, 'slice'), args: [0, 8] },
    { name: 'IpAddress.parse', call: IpAddress.parse as Call, args: [SERVER] },
    { name: 'IpAddress.fromBytes', call: IpAddress.fromBytes as Call, args: [Buffer.from([127, 0, 0, 1])] },
    { name: 'warmUp', call: api.warmUp as Call, args: [device, { durationMs: 1 }] },
    { name: 'startDatagrams', call: api.startDatagrams as Call, args: [qp] },
  ];
}, 60_000);
afterAll(async () => {
  await manager.close();
  await Promise.all([device, server].map((one) => one.close()));
});

/** A call with valid arguments may wait for a peer: undefined then. */
async function unlessItWaits(outcome: unknown): Promise<unknown> {
  if (!(outcome instanceof Promise)) return outcome;
  outcome.catch(() => {});
  return Promise.race([outcome, delay(WAIT_MS)]);
}

/** Every way to replace one argument, or one option down to a depth of two. */
function* variants(args: readonly unknown[]): Generator<{ readonly where: string; readonly args: unknown[] }> {
  for (const [i, arg] of args.entries()) {
    for (const [what, bad] of BAD) yield { where: `argument ${i + 1} = ${what}`, args: args.with(i, bad) };
    if (typeof arg !== 'object' || arg === null || Object.getPrototypeOf(arg) !== Object.prototype) continue;
    for (const name of Object.keys(arg)) {
      for (const [what, bad] of BAD) yield { where: `${name} = ${what}`, args: args.with(i, { ...arg, [name]: bad }) };
      const inner = (arg as Record<string, unknown>)[name];
      if (typeof inner !== 'object' || inner === null || Object.getPrototypeOf(inner) !== Object.prototype) continue;
      for (const key of Object.keys(inner)) {
        for (const [what, bad] of BAD) {
          yield { where: `${name}.${key} = ${what}`, args: args.with(i, { ...arg, [name]: { ...inner, [key]: bad } }) };
        }
      }
    }
  }
}

describe('arguments that cannot be', () => {
  it('are refused with a RoceError', async () => {
    const wrong: string[] = [];
    for (const { name, call, args, undo } of cases) {
      for (const variant of variants(args)) {
        try {
          const value = await unlessItWaits((call as (...args: unknown[]) => unknown)(...variant.args));
          await undo?.(value as never);
        } catch (error) {
          if (error instanceof RoceError) continue;
          wrong.push(`${name}: ${variant.where}: ${String(error)}`);
        }
      }
    }
    expect(wrong).toEqual([]);
  }, 600_000);
});

/** They check what they are given elsewhere, or take nothing that could be wrong. */
const TAKE_NOTHING = new Set([
  'checkCompletion',
  'describeCompletion',
  'rateControlNames',
  'recoveryNames',
  'senderInGrh',
  'statusName',
  'statusText',
  'registerRateControl',
  'registerRecovery',
]);

it('every exported function is called', () => {
  const functions = Object.entries(api).filter(([name, value]) => typeof value === 'function' && /^[a-z]/.test(name));
  const called = new Set(cases.map(({ name }) => name));
  expect(functions.map(([name]) => name).filter((name) => !called.has(name) && !TAKE_NOTHING.has(name))).toEqual([]);
});
