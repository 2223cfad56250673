/** The pool protocols and UDP ports, with each parameter replaced by what it cannot be. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { openBatchedUdpPort, openUdpPort, receiveBudgetOf } from '../../src/dgram-ext/index.js';
import { Access, IpAddress, openDevice, type RdmaDevice } from '../../src/index.js';
import {
  BlockRequester,
  BlockServer,
  NoDelayPolicy,
  PoolOwner,
  PoolReader,
  PoolSource,
  PoolWriter,
  WindowLink,
  windowQueueDepths,
} from '../../src/window/index.js';
import { bound, type Call, type Case, close, wronglyTaken } from '../support/wrong-arguments.js';

const HOST = '127.65.6.1';
const BLOCKS = 4;

let device: RdmaDevice;
let cases: readonly Case[];

beforeAll(async () => {
  device = await openDevice({ address: HOST, udpPort: 0 });
  const pd = await device.createPd();
  const { clock } = device;
  const newParts = async () => {
    const [sendCq, recvCq] = [await device.createCq(64), await device.createCq(64)];
    const qp = await pd.createQp({ sendCq, recvCq, type: 'RC', ...windowQueueDepths(BLOCKS) });
    await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_WRITE });
    return { pd, qp, sendCq, recvCq, clock };
  };
  const parts = await newParts();
  const link = await WindowLink.over(await newParts(), BLOCKS);
  const pool = { blocks: BLOCKS, blockBytes: 64 };
  const consumer = { policy: new NoDelayPolicy(), onBlock: () => {} };
  const source = await pd.regMr(64, Access.LOCAL_WRITE);
  const udp = {
    address: IpAddress.parse(HOST),
    udpPort: 0,
    receiveBufferBytes: 4096,
    sendBufferBytes: 4096,
    batchSlots: 4,
    batches: 1,
  };
  const made =
    (construct: new (...args: never[]) => unknown): Call =>
    (...args: never[]) =>
      new construct(...args);
  cases = [
    { name: 'windowQueueDepths', call: windowQueueDepths, args: [BLOCKS] },
    { name: 'WindowLink.over', call: WindowLink.over as Call, args: [parts, BLOCKS], undo: close },
    { name: 'PoolOwner.open', call: PoolOwner.open as Call, args: [link, { ...pool, blocksMax: 8, ...consumer }] },
    { name: 'PoolSource.open', call: PoolSource.open as Call, args: [link, { ...pool, fill: () => 0 }] },
    { name: 'BlockServer.open', call: BlockServer.open as Call, args: [link, { ...pool, onBlock: () => {} }] },
    { name: 'PoolReader', call: made(PoolReader), args: [link, { blocksMax: 8, readsMax: 1, ...consumer }] },
    { name: 'PoolWriter', call: made(PoolWriter), args: [link, { blocksMax: 8, growAfterStalls: 3 }] },
    { name: 'BlockRequester', call: made(BlockRequester), args: [link] },
    {
      name: 'PoolWriter.write',
      call: bound(new PoolWriter(link, { blocksMax: 8 }), 'write'),
      args: [source, 0, 64],
    },
    { name: 'BlockRequester.write', call: bound(new BlockRequester(link), 'write'), args: [source, 0, 64] },
    { name: 'openUdpPort', call: openUdpPort, args: [{ ...udp, native: 'auto' }] },
    {
      name: 'openBatchedUdpPort',
      call: openBatchedUdpPort,
      args: [{ ...udp, polled: false, borrows: false, nowNs: () => 0 }],
    },
    { name: 'receiveBudgetOf', call: receiveBudgetOf, args: [4096] },
  ];
}, 60_000);
afterAll(() => device.close());

it('arguments that cannot be are refused with a RoceError', async () => {
  expect(await wronglyTaken(cases)).toEqual([]);
}, 600_000);
