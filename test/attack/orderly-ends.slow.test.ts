/** Iteration that nobody awaits: it ends quietly when either side closes, wherever the engine runs, and says a failure. */

import { afterEach, describe, expect, it } from 'vitest';
import type { Connection, ConnectionOptions, Listener, RdmaDevice } from '../../src/index.js';
import * as sourceApi from '../../src/index.js';
import { builtApi, isBuilt } from '../support/built-api.js';

const SERVER = '127.0.4.11';
const CLIENT = '127.0.4.12';

const devices: RdmaDevice[] = [];
const rejections: unknown[] = [];
const onRejection = (reason: unknown) => rejections.push(reason);
process.on('unhandledRejection', onRejection);

afterEach(async () => {
  await Promise.all(devices.splice(0).map((device) => device.close()));
  rejections.length = 0;
});

/** How an iteration that has begun ends. */
function iterate(source: Connection | Listener): Promise<string> {
  return (async () => {
    for await (const it of source) void it;
  })().then(
    () => 'quietly',
    (error) => `with ${(error as { code?: string }).code}`,
  );
}

describe.each([
  ['inline', sourceApi],
  ['worker', undefined],
] as const)('%s engine', (engine, api) => {
  const test = it.runIf(engine === 'inline' || isBuilt);

  async function pair(options: ConnectionOptions = {}) {
    const { connect, listen, openDevice } = api ?? (await builtApi());
    const [server, client] = await Promise.all(
      [SERVER, CLIENT].map((address) => openDevice({ address, udpPort: 0, engine })),
    );
    devices.push(server, client);
    const listener = await listen(server, { port: 0, region: server.allocate(64) });
    const [accepted, connected] = await Promise.all([
      listener.accept(),
      connect(client, { host: SERVER, port: listener.port, ...options }),
    ]);
    return { server, client, listener, accepted, connected };
  }

  test.each([
    ['the device here', ({ server }: Ends) => server.close()],
    ['the device there', ({ client }: Ends) => client.close()],
    ['the connection here', ({ accepted }: Ends) => accepted.close()],
    ['the connection there', ({ connected }: Ends) => connected.close()],
    ['both devices at once', ({ server, client }: Ends) => Promise.all([server.close(), client.close()])],
  ])('messages, idle: closing %s ends both sides quietly', async (_, close) => {
    const ends = await pair();
    const iterations = [iterate(ends.accepted), iterate(ends.connected)];
    await close(ends);
    expect(await Promise.all(iterations)).toEqual(['quietly', 'quietly']);
    expect(rejections).toEqual([]);
  });

  test.each([
    ['the device here', ({ server }: Ends) => server.close()],
    ['the device there', ({ client }: Ends) => client.close()],
    ['the connection here', ({ accepted }: Ends) => accepted.close()],
    ['the connection there', ({ connected }: Ends) => connected.close()],
  ])('messages under way in both directions: closing %s ends both sides quietly', async (_, close) => {
    const ends = await pair();
    const iterations = [iterate(ends.accepted), iterate(ends.connected)];
    const send = async (connection: Connection) => {
      for (;;) await connection.send(Buffer.alloc(5_000));
    };
    const sending = [send(ends.accepted), send(ends.connected)].map((promise) => promise.catch(() => {}));
    for (let i = 0; i < 20; i++) await ends.connected.write(Buffer.alloc(64));
    await close(ends);
    expect(await Promise.all(iterations)).toEqual(['quietly', 'quietly']);
    await Promise.all(sending);
    expect(rejections).toEqual([]);
  });

  test.each([
    ['the device', ({ server }: Ends) => server.close()],
    ['the connection', ({ accepted }: Ends) => accepted.close()],
  ])('the peer closes %s while a message is dealt with and others are under way: quietly', async (_, close) => {
    const ends = await pair({ timeout: 12, retryCnt: 2 });
    const { accepted, connected } = ends;
    let goOn = () => {};
    let isBusy = () => {};
    const busy = new Promise<void>((resolve) => {
      isBusy = resolve;
    });
    const iteration = (async () => {
      for await (const message of connected) {
        void message;
        isBusy();
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
      }
    })().then(
      () => 'quietly',
      (error) => `with ${error.code}`,
    );
    await accepted.send(Buffer.from('one'));
    await busy;
    await close(ends);
    await connected.peerClosed();
    // What is sent now fails, because nobody is there.
    await expect(connected.send(Buffer.from('late'))).rejects.toMatchObject({ code: 'ERR_ROCE_COMPLETION' });
    goOn();
    expect(await iteration).toBe('quietly');
    expect(rejections).toEqual([]);
  });

  test('a pending receive() of each side rejects, once', async () => {
    const { server, accepted, connected } = await pair();
    const receiving = [accepted.receive(), connected.receive()].map((it) => it.catch((error) => error.code));
    await server.close();
    expect(await Promise.all(receiving)).toEqual(['ERR_ROCE_CLOSED', 'ERR_ROCE_CLOSED']);
    expect(rejections).toEqual([]);
  });

  test.each([
    ['the listener', ({ listener }: Ends) => listener.close()],
    ['its device', ({ server }: Ends) => server.close()],
  ])('peers: closing %s ends the iteration quietly', async (_, close) => {
    const ends = await pair();
    const iteration = iterate(ends.listener);
    await close(ends);
    expect(await iteration).toBe('quietly');
    expect(rejections).toEqual([]);
  });

  test('a failure is said: the negative twin', async () => {
    const { accepted, connected } = await pair();
    const iteration = iterate(connected);
    // Outside what the peer opened: a NAK ends the connection, and both sides are still there.
    connected.qp.postSend({ opcode: 'RDMA_WRITE', inline: Buffer.alloc(8), remoteAddr: 1n, rkey: 1 });
    expect(await iteration).toBe('with ERR_ROCE_COMPLETION');
    expect(accepted.isClosed).toBe(false);
  });
});

interface Ends {
  readonly server: RdmaDevice;
  readonly client: RdmaDevice;
  readonly listener: Listener;
  readonly accepted: Connection;
  readonly connected: Connection;
}
