/** Programs in JavaScript have no compiler that tells them: the library does, by name, and never with a TypeError of its own inside. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { Access, connect, listen, openDevice, type RdmaDevice } from '../../src/index.js';
import { MemoryDevice, NbdServer, StorageClient, StorageServer, SuEndpoint } from '../../src/storage-rpc/index.js';

const ADDRESS = '127.65.2.1';
let device: RdmaDevice;
beforeAll(async () => {
  device = await openDevice({ address: ADDRESS });
});
afterAll(() => device.close());

/** What a program without types can pass. */
const anything = (value: unknown) => value as never;

it.each([
  ['openDevice()', () => openDevice(anything(undefined)), /needs an address/],
  ['openDevice with a misspelt option', () => openDevice(anything({ adress: ADDRESS })), /needs an address/],
  [
    'an unknown io',
    () => openDevice({ address: ADDRESS, io: anything('fast') }),
    /io is 'fast' \(it is one of auto, dgram, mmsg, shm\)/,
  ],
  ['an unknown engine', () => openDevice({ address: ADDRESS, engine: anything('thread') }), /engine is 'thread'/],
  ['connect without a port', () => connect(device, anything({ host: ADDRESS })), /connect needs a host and a port/],
  ['listen without a port', () => listen(device, anything({})), /listen needs a host and a port/],
  [
    'an unknown recovery',
    () => listen(device, { port: 0, recovery: anything('gbn') }),
    /no recovery scheme 'gbn' \(there are go-back-n, /,
  ],
  [
    'a region of text',
    async () => (await device.createPd()).regMr(anything('text'), Access.LOCAL_WRITE),
    /pass a Buffer, or a number/,
  ],
  ['listen with a region of text', () => listen(device, { port: 0, region: anything('abc') }), /region is 'abc'/],
  ['createQp({})', async () => (await device.createPd()).createQp(anything({})), /needs a completion queue/],
])('%s is refused with what is missing', async (_, call, message) => {
  await expect(call()).rejects.toMatchObject({
    code: expect.stringMatching(/^ERR_ROCE_(INVALID_ARGUMENT|UNKNOWN_NAME)$/),
    message: expect.stringMatching(message),
  });
});

it.each([
  ['an address handle of DSCP 300', { dscp: 300 }, /dscp is 300 \(it must be a whole number from 0 to 63\)/],
  ['one of UDP port 70000', { udpPort: 70_000 }, /udpPort is 70000/],
  ['one of DSCP 1.5', { dscp: 1.5 }, /dscp is 1.5 \(it must be a whole number/],
  ['one of DSCP -1', { dscp: -1 }, /dscp is -1/],
])('%s is out of range', async (_, options, message) => {
  const pd = await device.createPd();
  await expect(pd.createAh(device.address, options)).rejects.toMatchObject({
    code: 'ERR_ROCE_OUT_OF_RANGE',
    message: expect.stringMatching(message),
  });
  await expect(pd.createAh(device.address, { dscp: 63, udpPort: 65_535 })).resolves.toBeDefined();
});

it.each<[string, () => Promise<unknown>]>([
  ['a device of UDP port 99999', () => openDevice({ address: ADDRESS, udpPort: 99_999 })],
  ['a device of UDP port NaN', () => openDevice({ address: ADDRESS, udpPort: Number.NaN })],
  ['a listener on port 99999', () => listen(device, { port: 99_999 })],
  ['a listener without a connection', () => listen(device, { port: 0, maxConnections: 0 })],
  ['a region of -5 bytes', () => listen(device, { port: 0, region: -5 })],
  ['messages of -1 bytes', () => listen(device, { port: 0, messageBytesMax: -1 })],
  ['no receives', () => listen(device, { port: 0, receiveDepth: 0 })],
  ['a billion receives', () => listen(device, { port: 0, receiveDepth: 1e9 })],
  ['a path MTU of 1500', () => listen(device, { port: 0, mtu: 1500 })],
  ['nine retries', () => listen(device, { port: 0, retryCnt: 9 })],
  ['the timer code 40', () => listen(device, { port: 0, timeout: 40 })],
])('%s is refused at the call, not with the first peer', async (_, call) => {
  await expect(call()).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
});

it.each([
  ['rqPsn', -1],
  ['rqPsn', 2 ** 24],
  ['destQpn', 2 ** 24 + 5],
  ['destQpn', 2 ** 32 + 5],
  ['maxDestRdAtomic', 1.7],
  ['minRnrTimer', Number.NaN],
])('%s %d reaches no queue pair', async (name, value) => {
  const pd = await device.createPd();
  const cq = await device.createCq(16);
  const qp = await pd.createQp({ sendCq: cq });
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: 0 });
  const good = {
    av: { address: device.address },
    pathMtu: 1024,
    destQpn: 77,
    rqPsn: 5,
    maxDestRdAtomic: 1,
    minRnrTimer: 12,
  };
  await expect(qp.modify({ state: 'RTR', ...good, [name]: value })).rejects.toMatchObject({
    code: 'ERR_ROCE_OUT_OF_RANGE',
    message: expect.stringContaining(`${name} is ${value}`),
  });
  expect(await qp.query()).toMatchObject({ state: 'INIT' });
  await qp.modify({ state: 'RTR', ...good });
  expect(await qp.query()).toMatchObject({ state: 'RTR', rqPsn: 5 });
});

it('a datagram to a QPN above 24 bits is refused where it is posted', async () => {
  const pd = await device.createPd();
  const cq = await device.createCq(16);
  const qp = await pd.createQp({ type: 'UD', sendCq: cq });
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey: 1 });
  await qp.modify({ state: 'RTR' });
  await qp.modify({ state: 'RTS', sqPsn: 0 });
  const ah = await pd.createAh(device.address);
  const send = (remoteQpn: number) => qp.postSend({ opcode: 'SEND', ah, remoteQpn, remoteQkey: 1 });
  expect(() => send(2 ** 24)).toThrow(expect.objectContaining({ code: 'ERR_ROCE_OUT_OF_RANGE' }));
  expect(() => send(2 ** 24 - 1)).not.toThrow();
});

const DISK = new MemoryDevice(1 << 16);
const STORAGE = { disks: [DISK], host: ADDRESS, port: 0 };
const NBD = { listen: { host: ADDRESS, port: 0 }, exportName: '', description: '', device: DISK };

it.each([
  ['StorageServer.open', 'poolBytesMax', () => StorageServer.open(anything({ ...STORAGE, poolBytsMax: 1 }))],
  ['StorageClient.connect', 'sessions', () => StorageClient.connect(anything({ host: ADDRESS, port: 1, session: 2 }))],
  [
    'path of StorageClient.connect',
    'holdDownNs',
    () => StorageClient.connect({ host: ADDRESS, port: 1, path: anything({ holdDwnNs: 1 }) }),
  ],
  ['NbdServer.open', 'exportName', () => NbdServer.open(anything({ ...NBD, exportNam: 'x' }))],
  ['SuEndpoint.open', 'slotBytes', () => SuEndpoint.open(device, anything({ slotByte: 4096 }))],
])('%s refuses a misspelt option, and says that %s was meant', async (call, meant, refused) => {
  await expect(refused()).rejects.toMatchObject({
    code: 'ERR_ROCE_UNKNOWN_NAME',
    message: expect.stringMatching(new RegExp(`^${call} has no option '\\w+' \\(did you mean '${meant}'\\?\\)$`)),
  });
});

it('the same options, rightly spelt, are taken', async () => {
  await using server = await StorageServer.open({ ...STORAGE, poolBytesMax: 1 << 20 });
  await using nbd = await NbdServer.open(NBD);
  await using endpoint = await SuEndpoint.open(device, { slotBytes: 4096, poolBytesMax: 1 << 20 });
  await using client = await StorageClient.connect({
    host: ADDRESS,
    port: server.port,
    sessions: 1,
    path: { holdDownNs: 1e9 },
  });
  expect([client.disk.sizeBytes, nbd.uri.startsWith('nbd://'), endpoint.pools.local]).toEqual([
    1 << 16,
    true,
    expect.anything(),
  ]);
});

it('postSend refuses a misspelt field in the first requests of a queue pair; what is right goes on', async () => {
  const pd = await device.createPd();
  const cq = await device.createCq(128);
  const qp = await pd.createQp({ type: 'UD', sendCq: cq, maxSendWr: 128 });
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey: 1 });
  await qp.modify({ state: 'RTR' });
  await qp.modify({ state: 'RTS', sqPsn: 0 });
  const ah = await pd.createAh(device.address);
  const request = { opcode: 'SEND', ah, remoteQpn: 77, remoteQkey: 1 } as const;
  qp.postSend(request);
  expect(() => qp.postSend(anything({ ...request, imediate: 1 }))).toThrow(
    expect.objectContaining({
      code: 'ERR_ROCE_UNKNOWN_NAME',
      message: "postSend has no option 'imediate' (did you mean 'immediate'?)",
    }),
  );
  expect(() => qp.postSend(anything({ ...request, wrid: 1 }))).toThrow(/did you mean 'wrId'/);
  const room = qp.sendRoom;
  qp.postSend(request);
  expect(qp.sendRoom).toBe(room - 1); // The refused ones have taken none.
});
