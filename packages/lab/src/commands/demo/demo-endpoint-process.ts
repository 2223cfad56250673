import { fillPattern, method, patternMismatch, serveParent } from '@rocev2/command';
import { type Connection, connect, type Listener, listen } from 'rocev2/internal/cm';
import { RoceError } from 'rocev2/internal/core';
import { openDevice, type RdmaDevice } from 'rocev2/internal/verbs';
import { z } from 'zod';

const TCP_HOST = '127.0.0.1';
const RECEIVE_DEPTH = 4;

let device: RdmaDevice | undefined;
let listener: Listener | undefined;
let connection: Connection | undefined;
let region = Buffer.alloc(0);

function required<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new RoceError('ERR_ROCE_INVALID_STATE', `there is no ${what} yet`);
  return value;
}

function patterned(bytes: number, seed: number): Buffer {
  const data = Buffer.alloc(bytes);
  fillPattern(data, seed);
  return data;
}

const connected = () => required(connection, 'connection');
const patternArgs = { bytes: z.number().int(), seed: z.number().int() };

const service = {
  open: method({ address: z.string(), switchPort: z.string() }, async ({ address, switchPort }) => {
    device = await openDevice({ address, frame: { local: `${TCP_HOST}:0`, remote: switchPort } });
    return device.portDescription;
  }),
  listen: method({ regionBytes: z.number().int() }, async ({ regionBytes }) => {
    region = Buffer.alloc(regionBytes);
    listener = await listen(required(device, 'device'), {
      port: 0,
      host: TCP_HOST,
      allowForeignGid: true,
      region,
      messageBytesMax: regionBytes,
      receiveDepth: RECEIVE_DEPTH,
    });
    return listener.port;
  }),
  accept: method({}, async () => {
    connection = await required(listener, 'listener').accept();
  }),
  connect: method({ port: z.number().int() }, async ({ port }) => {
    connection = await connect(required(device, 'device'), { host: TCP_HOST, port, allowForeignGid: true });
    const { mtu, recovery } = connection.agreement;
    return { mtu, recovery };
  }),
  send: method(patternArgs, ({ bytes, seed }) => connected().send(patterned(bytes, seed))),
  receive: method(patternArgs, async ({ bytes, seed }) => {
    const { data } = await connected().receive();
    return data.length === bytes && patternMismatch(data, seed) < 0;
  }),
  write: method(patternArgs, ({ bytes, seed }) => connected().write(patterned(bytes, seed))),
  hasPattern: method(patternArgs, ({ bytes, seed }) => patternMismatch(region.subarray(0, bytes), seed) < 0),
  fillRegion: method(patternArgs, ({ bytes, seed }) => fillPattern(region.subarray(0, bytes), seed)),
  read: method(patternArgs, async ({ bytes, seed }) => {
    const data = await connected().read(bytes);
    return data.length === bytes && patternMismatch(data, seed) < 0;
  }),
  setNumber: method({ value: z.bigint() }, ({ value }) => {
    region.writeBigUInt64LE(value);
  }),
  number: method({}, () => region.readBigUInt64LE()),
  fetchAdd: method({ count: z.number().int(), add: z.bigint() }, async ({ count, add }) => {
    const before = await Promise.all(Array.from({ length: count }, () => connected().fetchAdd(0, add)));
    return before.every((value, i) => value === BigInt(i) * add);
  }),
  compareSwap: method({ expected: z.bigint(), desired: z.bigint() }, ({ expected, desired }) =>
    connected().compareSwap(0, expected, desired),
  ),
  counters: method({}, () => required(device, 'device').counters()),
  close: method({}, async () => {
    await connection?.close();
    await listener?.close();
    await device?.close();
  }),
};

export type DemoEndpointService = typeof service;

serveParent(service);
