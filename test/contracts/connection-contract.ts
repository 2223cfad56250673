/** What `listen` and `connect` must do, wherever the NIC runs. */

import { connect as connectTcp, createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type * as sourceApi from '../../src/index.js';
import type { Connection, ConnectionOptions, DeviceOptions, Listener, RdmaDevice, Refusal } from '../../src/index.js';
import { Access } from '../../src/index.js';
import { eventually } from '../support/eventually.js';

export interface EngineUnderTest {
  readonly api: Pick<typeof sourceApi, 'ConnectionManager' | 'connect' | 'listen' | 'openDevice'>;
  readonly options: Omit<DeviceOptions, 'address'>;
  /** Loopback addresses of the caller alone, so that test files may run side by side on UDP 4791. */
  readonly server: string;
  readonly client: string;
}

/** What the listener says of the next peer that it turns away. */
function nextRefusal(listener: Listener): Promise<Refusal> {
  return new Promise((resolve) => listener.events.once('REFUSED', resolve));
}

/** Memory that every engine can reach. */
function sharedBuffer(bytes: number): Buffer {
  return Buffer.from(new SharedArrayBuffer(bytes));
}

export function connectionContract(
  name: string,
  { api, options, server: SERVER, client: CLIENT }: EngineUnderTest,
): void {
  const { ConnectionManager, connect, listen, openDevice } = api;
  const open: Array<{ close(): Promise<void> }> = [];

  describe(name, () => {
    afterEach(async () => {
      for (const thing of open.splice(0).reverse()) await thing.close();
    });

    function closeLater<T extends { close(): Promise<void> }>(thing: T): T {
      open.push(thing);
      return thing;
    }

    async function devices(): Promise<[RdmaDevice, RdmaDevice]> {
      return [
        closeLater(await openDevice({ ...options, address: SERVER })),
        closeLater(await openDevice({ ...options, address: CLIENT })),
      ];
    }

    async function pair(
      server: ConnectionOptions = {},
      client: ConnectionOptions = {},
    ): Promise<{ server: Connection; client: Connection; listener: Listener }> {
      const [serverDevice, clientDevice] = await devices();
      const listener = closeLater(await listen(serverDevice, { port: 0, ...server }));
      const [accepted, connected] = await Promise.all([
        listener.accept(),
        connect(clientDevice, { host: SERVER, port: listener.port, ...client }),
      ]);
      return { server: closeLater(accepted), client: closeLater(connected), listener };
    }

    describe('a connection', () => {
      it('delivers messages in order, both ways, with and without immediate data', async () => {
        const { server, client } = await pair();
        for (let i = 0; i < 100; i++) void client.send(Buffer.from(`message ${i}`));
        for (let i = 0; i < 100; i++) expect((await server.receive()).data.toString()).toBe(`message ${i}`);
        await server.send(Buffer.from('back'), { immediate: 0xfeedbeef });
        expect(await client.receive()).toMatchObject({ data: Buffer.from('back'), immediate: 0xfeedbeef });
      });

      it('writes, reads and changes the memory that the peer opened, and no other', async () => {
        const memory = sharedBuffer(10_000);
        const { client } = await pair({ region: memory.subarray(1000, 9000) });
        const data = Buffer.alloc(7000, 0xa5);
        await client.write(data, 500);
        expect(memory.subarray(1500, 8500).equals(data)).toBe(true);
        expect(memory.subarray(0, 1500).every((byte) => byte === 0)).toBe(true);
        expect(memory.subarray(8500).every((byte) => byte === 0)).toBe(true);
        expect((await client.read(7000, 500)).equals(data)).toBe(true);
        expect(await client.fetchAdd(8, 5n)).toBe(0n);
        expect(await client.compareSwap(8, 5n, 2n ** 64n - 1n)).toBe(5n);
        expect(await client.fetchAdd(8, 2n)).toBe(2n ** 64n - 1n);
        expect(memory.readBigUInt64LE(1008)).toBe(1n);
        await expect(client.write(data, 1001)).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
      });

      it('refuses what cannot be meant, and goes on', async () => {
        const { client } = await pair({ region: 64 });
        const invalid = { code: 'ERR_ROCE_OUT_OF_RANGE' };
        for (const offset of [-1, 0.5, Number.NaN, 64]) {
          await expect(client.write(Buffer.alloc(1), offset)).rejects.toMatchObject(invalid);
        }
        for (const length of [-1, 1.5, 65]) await expect(client.read(length)).rejects.toMatchObject(invalid);
        await expect(client.fetchAdd(4, 1n)).rejects.toMatchObject(invalid);
        expect(await client.fetchAdd(8, 1n)).toBe(0n);
      });

      it('says that it is closed, whatever is asked of it', async () => {
        const { client } = await pair({ region: 64 });
        await client.close();
        const closed = { code: 'ERR_ROCE_CLOSED' };
        await expect(client.write(Buffer.alloc(1))).rejects.toMatchObject(closed);
        await expect(client.read(1)).rejects.toMatchObject(closed);
        await expect(client.send(Buffer.alloc(1))).rejects.toMatchObject(closed);
        await expect(client.receive()).rejects.toMatchObject(closed);
      });

      it('says that the peer opened no memory', async () => {
        const { client } = await pair();
        await expect(client.read(1)).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_STATE' });
      });

      it('waits, rather than fails, when more is sent than the peer has received', async () => {
        const { server, client } = await pair({ receiveDepth: 4 });
        const sent = Promise.all(Array.from({ length: 300 }, (_, i) => client.send(Buffer.from([i & 255]))));
        for (let i = 0; i < 300; i++) expect((await server.receive()).data[0]).toBe(i & 255);
        await sent;
      });

      it('holds no more messages for the program than it has receives for', async () => {
        const { server, client } = await pair({ receiveDepth: 4 });
        let sent = 0;
        const all = Promise.all(Array.from({ length: 50 }, (_, i) => client.send(Buffer.from([i])).then(() => sent++)));
        // Nobody calls receive: the fifth message is refused as not ready, again and again.
        await eventually(() => sent >= 4 && client.device.counters().rnr_nak_received >= 5);
        expect(sent).toBe(4);
        for (let i = 0; i < 50; i++) expect((await server.receive()).data[0]).toBe(i);
        await all;
      });

      it('gives out what had arrived before the peer went away', async () => {
        const { server, client } = await pair({ timeout: 8, retryCnt: 2 });
        await client.send(Buffer.from('last words'));
        await client.close();
        expect((await server.receive()).data.toString()).toBe('last words');
        await expect(server.send(Buffer.alloc(1))).rejects.toThrow(/retry counter exceeded|closed/);
      });

      it('refuses a message that the peer has no room for, and what is no bytes, and goes on', async () => {
        const { server, client } = await pair({ messageBytesMax: 1000 });
        await expect(client.send(Buffer.alloc(1001))).rejects.toMatchObject({
          code: 'ERR_ROCE_LIMIT',
          message: expect.stringMatching(/1001 bytes is longer than the 1000 the peer can receive \(.*messageBytesMax/),
        });
        await expect(client.send('text' as unknown as Uint8Array)).rejects.toMatchObject({
          code: 'ERR_ROCE_INVALID_ARGUMENT',
          message: expect.stringMatching(/not a string \(.*Buffer\.from\(text\)/),
        });
        await client.send(Buffer.alloc(1000, 7));
        expect((await server.receive()).data.length).toBe(1000);
      });

      it('ends with the first cause when the peer closes, and rejects everything after with it', async () => {
        const { server, client } = await pair({ region: 64 }, { timeout: 8, retryCnt: 2 });
        await server.close();
        await expect(client.write(Buffer.alloc(8))).rejects.toThrow(
          /transport retry counter exceeded.*peer process is gone/,
        );
        await expect(client.send(Buffer.alloc(1))).rejects.toThrow(/transport retry counter exceeded/);
        await expect(client.receive()).rejects.toThrow(/transport retry counter exceeded/);
      });

      it('delivers what was sent before the peer closed, and then says that it has', async () => {
        const { server, client } = await pair();
        const waiting = Promise.allSettled([server.receive(), server.receive()]);
        await client.send(Buffer.from('last words'));
        await client.close();
        const left = { code: 'ERR_ROCE_CLOSED', message: expect.stringMatching(/peer has closed/) };
        expect(await waiting).toMatchObject([
          { status: 'fulfilled', value: { data: Buffer.from('last words') } },
          { status: 'rejected', reason: left },
        ]);
        await expect(server.receive()).rejects.toMatchObject(left);
      });

      it('acknowledges what it has received before it closes', async () => {
        const { server, client } = await pair();
        const sent = client.send(Buffer.from('answer'));
        await server.receive();
        await server.close();
        await expect(sent).resolves.toBeUndefined();
      });

      it('iterates over messages until the peer closes', async () => {
        const { server, client } = await pair();
        await Promise.all(Array.from({ length: 20 }, (_, i) => client.send(Buffer.from([i]))));
        await client.close();
        const seen: number[] = [];
        for await (const { data } of server) seen.push(data[0]);
        expect(seen).toEqual(Array.from({ length: 20 }, (_, i) => i));
      });

      it('iterates over messages until it is closed', async () => {
        const { server, client } = await pair();
        const seen: string[] = [];
        const reading = (async () => {
          for await (const message of server) seen.push(message.data.toString());
        })();
        await client.send(Buffer.from('one'));
        await client.send(Buffer.from('two'));
        await eventually(() => seen.length === 2);
        await server.close();
        await reading;
        expect(seen).toEqual(['one', 'two']);
      });
    });

    describe('closing the device', () => {
      it('does not fail because something is being made, which fails or is closed as well', async () => {
        const [device] = await devices();
        const pd = await device.createPd();
        const making = [device.createPd(), device.createCq(4), pd.regMr(4096, Access.LOCAL_WRITE), pd.allocMw(1)];
        const closing = device.close();
        const until = performance.now() + 50;
        while (performance.now() < until); // Everything happens while this thread is busy.
        const made = await Promise.allSettled(making);
        await closing;
        for (const result of made) if (result.status === 'fulfilled') await result.value.close();
      });

      it('ends an attempt to connect', async () => {
        const [server, client] = await devices();
        const listener = closeLater(await listen(server, { port: 0 }));
        const connecting = connect(client, { host: SERVER, port: listener.port }).catch((error: Error) => error);
        await client.close();
        expect(await connecting).toMatchObject({ code: 'ERR_ROCE_CLOSED' });
      });
    });

    describe('connecting', () => {
      it('refuses different recovery schemes by name, on both sides', async () => {
        const [serverDevice, clientDevice] = await devices();
        const listener = closeLater(await listen(serverDevice, { port: 0, recovery: 'selective-repeat' }));
        const refused = nextRefusal(listener);
        const connected = await connect(clientDevice, {
          host: SERVER,
          port: listener.port,
          recovery: 'go-back-0',
        }).catch((error: unknown) => error);
        const mismatch = {
          code: 'ERR_ROCE_MISMATCH',
          message: expect.stringMatching(/recovery is selective-repeat here and go-back-0 there/),
        };
        expect(connected).toMatchObject(mismatch);
        expect(await refused).toMatchObject({ reason: 'refused_mismatch', error: mismatch });
      });

      it('settles on the smaller path MTU', async () => {
        const { server, client } = await pair({ mtu: 1024 }, { mtu: 2048 });
        expect(server.agreement.mtu).toBe(1024);
        expect(client.agreement.mtu).toBe(1024);
        const big = Buffer.alloc(50_000, 3);
        await client.send(big);
        expect((await server.receive()).data.equals(big)).toBe(true);
      });

      it('says that nobody listens', async () => {
        const [, clientDevice] = await devices();
        await expect(connect(clientDevice, { host: CLIENT, port: 1 })).rejects.toMatchObject({
          code: 'ERR_ROCE_CONNECT',
        });
      });

      it('turns away a program that speaks something else', async () => {
        const [serverDevice] = await devices();
        const listener = closeLater(await listen(serverDevice, { port: 0 }));
        const refused = nextRefusal(listener);
        const socket = connectTcp(listener.port, SERVER, () => socket.write('GET / HTTP/1.1\r\n\r\n'));
        expect(await refused).toMatchObject({ reason: 'refused_mismatch', error: { code: 'ERR_ROCE_MISMATCH' } });
        socket.destroy();
      });

      it('turns away a line without end, and a hello with a wrong field names the field', async () => {
        const [serverDevice] = await devices();
        const listener = closeLater(await listen(serverDevice, { port: 0 }));
        const endlessRefused = nextRefusal(listener);
        const endless = connectTcp(listener.port, SERVER, () => endless.write('x'.repeat(100_000)));
        endless.on('error', () => {});
        expect(await endlessRefused).toMatchObject({ reason: 'refused_mismatch' });
        const wrongRefused = nextRefusal(listener);
        const wrong = connectTcp(listener.port, SERVER, () => wrong.write('{"rocev2":1,"gid":"zz"}\n'));
        expect((await wrongRefused).error.message).toMatch(/gid/);
        expect(listener.counters()).toMatchObject({ established: 0, refused_mismatch: 2 });
        wrong.destroy();
        endless.destroy();
      });

      it('lets no more peers of one address be silent than it may have connections: the oldest make room', async () => {
        const [serverDevice] = await devices();
        const listener = closeLater(await listen(serverDevice, { port: 0, maxConnectionsPerAddress: 6 }));
        let ended = 0;
        const sockets = Array.from({ length: 8 }, () => connectTcp(listener.port, SERVER));
        for (const socket of sockets)
          socket
            .on('error', () => {})
            .on('end', () => ended++)
            .resume();
        await eventually(() => ended >= 2);
        expect(ended).toBe(2);
        expect(listener.counters().evicted).toBe(2);
        for (const socket of sockets) socket.destroy();
      });

      it.each([false, true])('a listener with closesConnections: %s', async (closesConnections) => {
        const [serverDevice, clientDevice] = await devices();
        const listener = closeLater(await listen(serverDevice, { port: 0, closesConnections }));
        const target = { host: SERVER, port: listener.port };
        const [server, client] = await Promise.all([listener.accept(), connect(clientDevice, target)]);
        await listener.close();
        expect(server.isClosed).toBe(closesConnections);
        if (closesConnections) await client.peerClosed();
        else await client.send(Buffer.from('still here'));
      });

      it('makes connections that wait to be accepted, side by side', async () => {
        const [serverDevice, clientDevice] = await devices();
        const listener = closeLater(await listen(serverDevice, { port: 0 }));
        const target = { host: SERVER, port: listener.port };
        const clients = await Promise.all(Array.from({ length: 5 }, () => connect(clientDevice, target)));
        const sending = clients.map((client) => client.send(Buffer.from('early')));
        for (let i = 0; i < 5; i++) expect((await (await listener.accept()).receive()).data.toString()).toBe('early');
        await Promise.all(sending);
      });

      it('turns away a program that talks without being asked', async () => {
        const [serverDevice] = await devices();
        const listener = closeLater(await listen(serverDevice, { port: 0 }));
        const refused = nextRefusal(listener);
        const talker = connectTcp(listener.port, SERVER, () => talker.write('{}\n'.repeat(1000)));
        const cut = new Promise((resolve) => talker.on('close', resolve).on('error', () => {}));
        expect(await refused).toMatchObject({ reason: 'refused_mismatch' });
        await cut; // Although nobody has asked for a connection yet.
      });

      it('gives up on a server that accepts and then says nothing about itself', async () => {
        const [, clientDevice] = await devices();
        const server = createServer((socket) => socket.end()).listen(0, SERVER);
        await new Promise((resolve) => server.once('listening', resolve));
        const { port } = server.address() as { port: number };
        await expect(connect(clientDevice, { host: SERVER, port })).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
        server.close();
      });

      it('leaves nothing behind when it fails: the device can be used again', async () => {
        const { server, client, listener } = await pair();
        const refused = nextRefusal(listener);
        const target = { host: SERVER, port: listener.port };
        await expect(connect(client.device, { ...target, recovery: 'go-back-0' })).rejects.toThrow(/recovery/);
        await refused;
        await client.send(Buffer.from('still here'));
        expect((await server.receive()).data.toString()).toBe('still here');
      });

      it('ends with its device', async () => {
        const { server, client, listener } = await pair();
        const waiting = Promise.allSettled([server.receive(), listener.accept(), client.receive()]);
        await server.device.close();
        await client.device.close();
        for (const side of await waiting)
          expect(side).toMatchObject({ status: 'rejected', reason: { code: 'ERR_ROCE_CLOSED' } });
      });
    });

    describe('connecting through RDMA CM', () => {
      async function managedPair(options: ConnectionOptions = {}) {
        const [serverDevice, clientDevice] = await devices();
        const serverManager = closeLater(await ConnectionManager.open(serverDevice));
        const clientManager = closeLater(await ConnectionManager.open(clientDevice));
        const listener = closeLater(await listen(serverDevice, { port: 7471, manager: serverManager, ...options }));
        const [server, client] = await Promise.all([
          listener.accept(),
          connect(clientDevice, { host: SERVER, port: 7471, manager: clientManager }),
        ]);
        return { server: closeLater(server), client: closeLater(client), clientManager, clientDevice, listener };
      }

      it('gives the same connection, and tells the region without TCP', async () => {
        const memory = sharedBuffer(4096);
        const { server, client } = await managedPair({ region: memory });
        await client.send(Buffer.from('hello'));
        expect((await server.receive()).data.toString()).toBe('hello');
        expect(client.remote?.length).toBe(4096);
        expect(server.remote).toBeUndefined();
        await client.write(Buffer.from('there'), 8);
        expect(memory.toString('utf8', 8, 13)).toBe('there');
      });

      it('ends with its device, too', async () => {
        const { server, client } = await managedPair();
        const waiting = Promise.allSettled([server.receive()]);
        await client.device.close();
        expect(await waiting).toMatchObject([{ status: 'rejected', reason: { code: 'ERR_ROCE_CLOSED' } }]);
        await server.device.close();
      });

      it('acknowledges what it has received before it closes', async () => {
        const { server, client } = await managedPair();
        const sent = client.send(Buffer.from('answer'));
        await server.receive();
        await server.close();
        await expect(sent).resolves.toBeUndefined();
      });

      it('ends each of several connections with their device', async () => {
        const { server, clientManager, clientDevice, listener } = await managedPair();
        const target = { host: SERVER, port: 7471, manager: clientManager };
        const [second] = await Promise.all([listener.accept(), connect(clientDevice, target)]);
        await clientDevice.close();
        await Promise.all([server, closeLater(second)].map((connection) => connection.peerClosed({ timeoutMs: 3000 })));
      });

      it('tells the other side when it is closed', async () => {
        const { server, client } = await managedPair();
        await client.close();
        await server.peerClosed({ timeoutMs: 5000 });
        await expect(server.send(Buffer.from('late'))).rejects.toThrow();
      });

      it('says that nobody listens, and refuses a recovery scheme it cannot agree on', async () => {
        const { clientManager, clientDevice } = await managedPair();
        const target = { host: SERVER, port: 7472, manager: clientManager };
        await expect(connect(clientDevice, target)).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
        await expect(connect(clientDevice, { ...target, recovery: 'go-back-0' })).rejects.toMatchObject({
          code: 'ERR_ROCE_UNSUPPORTED',
        });
      });
    });
  });
}
