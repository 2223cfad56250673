/** What `signal` and `timeoutMs` must do, wherever the NIC runs. */

import { getEventListeners } from 'node:events';
import { connect as connectTcp, createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { ConnectionOptions, WaitEnded, WaitOptions } from '../../src/index.js';
import { eventually } from '../support/eventually.js';
import type { EngineUnderTest } from './connection-contract.js';

/** The error of a call that must not succeed. */
async function failureOf(call: Promise<unknown>): Promise<WaitEnded> {
  const outcome: unknown = await call.then(
    (value) => ({ value }),
    (error: unknown) => error,
  );
  expect(outcome).toBeInstanceOf(Error);
  return outcome as WaitEnded;
}

function listenersOf(signal: AbortSignal): number {
  return getEventListeners(signal, 'abort').length;
}

export function waitingContract(name: string, { api, options, server: SERVER, client: CLIENT }: EngineUnderTest): void {
  const { connect, listen, openDevice } = api;
  const open: Array<{ close(): Promise<void> }> = [];

  function closeLater<T extends { close(): Promise<void> }>(thing: T): T {
    open.push(thing);
    return thing;
  }

  async function devices() {
    return [
      closeLater(await openDevice({ ...options, address: SERVER })),
      closeLater(await openDevice({ ...options, address: CLIENT })),
    ] as const;
  }

  async function pair(serverOptions: ConnectionOptions = {}) {
    const [serverDevice, clientDevice] = await devices();
    const listener = closeLater(await listen(serverDevice, { port: 0, ...serverOptions }));
    const [server, client] = await Promise.all([
      listener.accept({ timeoutMs: 20_000 }),
      connect(clientDevice, { host: SERVER, port: listener.port, timeoutMs: 20_000 }),
    ]);
    return { server: closeLater(server), client: closeLater(client), listener };
  }

  describe(name, () => {
    afterEach(async () => {
      for (const thing of open.splice(0).reverse()) await thing.close();
    });

    it('an aborted iteration loses no message, and one that is aborted waits for nothing', async () => {
      const { server, client, listener } = await pair();
      const stop = new AbortController();
      const texts: string[] = [];
      const iterate = async () => {
        for await (const { data } of server.messages({ signal: stop.signal })) {
          texts.push(data.toString());
          if (texts.length === 2) stop.abort();
        }
      };
      for (const text of ['a', 'b', 'c']) await client.send(Buffer.from(text));
      expect((await failureOf(iterate())).code).toBe('ERR_ROCE_ABORTED');
      expect(texts).toEqual(['a', 'b']);
      for await (const { data } of server.messages()) {
        expect(data.toString()).toBe('c');
        break;
      }
      const { signal } = stop;
      expect((await failureOf(listener.connections({ signal }).next())).code).toBe('ERR_ROCE_ABORTED');
      expect((await failureOf(listener.connections({ timeoutMs: 1 }).next())).code).toBe('ERR_ROCE_TIMEOUT');
      expect(() => server.messages({ timeoutMs: -1 })).toThrow(/timeoutMs/);
    });

    it('an aborted receive loses no message, and leaves nobody waiting', async () => {
      const { server, client } = await pair();
      const stop = new AbortController();
      const given = Array.from({ length: 10 }, () => failureOf(server.receive({ signal: stop.signal })));
      const patient = server.receive();
      expect(server.unfinished.receives).toBe(11);
      stop.abort(new Error('enough'));
      for (const error of await Promise.all(given)) {
        expect(error).toMatchObject({ code: 'ERR_ROCE_ABORTED', cause: { message: 'enough' } });
      }
      expect(server.unfinished.receives).toBe(1);
      expect(listenersOf(stop.signal)).toBe(0);
      await client.send(Buffer.from('first'));
      await client.send(Buffer.from('second'));
      expect((await patient).data.toString()).toBe('first');
      expect((await server.receive()).data.toString()).toBe('second');
    });

    it('a timeout ends receive and accept, and the next call gets what comes', async () => {
      const { server, client, listener } = await pair();
      const late = { code: 'ERR_ROCE_TIMEOUT', message: 'receive did not finish within 20 ms' };
      expect(await failureOf(server.receive({ timeoutMs: 20 }))).toMatchObject(late);
      expect(await failureOf(listener.accept({ timeoutMs: 20 }))).toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
      expect([server.unfinished.receives, listener.waiting]).toEqual([0, 0]);
      await client.send(Buffer.from('still here'));
      expect((await server.receive({ timeoutMs: 20_000 })).data.toString()).toBe('still here');
      const accepting = listener.accept({ timeoutMs: 20_000 });
      closeLater(await connect(client.device, { host: SERVER, port: listener.port }));
      closeLater(await accepting);
    });

    it('peerClosed gives up as any other wait, and resolves once the peer has closed', async () => {
      const { server, client } = await pair();
      expect(await failureOf(server.peerClosed({ timeoutMs: 10 }))).toMatchObject({
        code: 'ERR_ROCE_TIMEOUT',
        message: 'peerClosed did not finish within 10 ms',
      });
      const stop = new AbortController();
      const waiting = failureOf(server.peerClosed({ signal: stop.signal }));
      stop.abort(new Error('enough'));
      expect(await waiting).toMatchObject({ code: 'ERR_ROCE_ABORTED', cause: { message: 'enough' } });
      expect(listenersOf(stop.signal)).toBe(0);
      expect(await failureOf(server.peerClosed(10 as WaitOptions))).toMatchObject({
        code: 'ERR_ROCE_INVALID_ARGUMENT',
      });
      const patient = server.peerClosed({ timeoutMs: 20_000 });
      await client.close();
      await patient;
      await server.peerClosed({ timeoutMs: 20_000 });
    });

    it('a signal that is aborted already does nothing at all', async () => {
      const memory = Buffer.from(new SharedArrayBuffer(64));
      const { server, client, listener } = await pair({ region: memory });
      await client.send(Buffer.from('waiting'));
      const signal = AbortSignal.abort();
      const wait: WaitOptions = { signal };
      const calls = [
        () => client.send(Buffer.from('x'), wait),
        () => client.write(Buffer.from('x'), 0, wait),
        () => client.read(8, 0, wait),
        () => client.fetchAdd(0, 1n, wait),
        () => client.compareSwap(0, 0n, 1n, wait),
        () => server.receive(wait),
        () => listener.accept(wait),
        () => connect(client.device, { host: SERVER, port: listener.port, ...wait }),
      ];
      const before = client.device.counters().tx_packets;
      for (const call of calls) {
        const error = await failureOf(call());
        expect(error).toMatchObject({ code: 'ERR_ROCE_ABORTED', cause: { name: 'AbortError' } });
        await error.released;
      }
      expect(client.device.counters().tx_packets).toBe(before);
      expect(memory.every((byte) => byte === 0)).toBe(true);
      expect(listener.counters().established).toBe(1);
      expect(listenersOf(signal)).toBe(0);
      expect((await server.receive()).data.toString()).toBe('waiting'); // The aborted receive did not take it.
    });

    it('an aborted send that was posted holds its buffer until the completion, one that was not posted never leaves', async () => {
      const { server, client } = await pair({ receiveDepth: 2 });
      const stop = new AbortController();
      const { signal } = stop;
      // Two are received, the third is refused as not ready again and again; behind 128 posted ones the rest is not posted.
      const sends = Array.from({ length: 140 }, (_, i) => client.send(Buffer.from([i]), i < 2 ? {} : { signal }));
      const failures = sends.slice(2).map(failureOf);
      await Promise.all(sends.slice(0, 2));
      await eventually(() => client.device.counters().rnr_nak_received > 0);
      stop.abort();
      const errors = await Promise.all(failures);
      expect(new Set(errors.map(({ code }) => code))).toEqual(new Set(['ERR_ROCE_ABORTED']));
      expect(listenersOf(signal)).toBe(0);
      let released = 0;
      for (const error of errors) void error.released.then(() => released++);
      const posted = client.unfinished.operations;
      expect(posted).toBeGreaterThan(100);
      expect(posted).toBeLessThan(138);
      await eventually(() => released === 138 - posted); // Those that were never posted are free, and no other.
      for (let i = 0; i < 2 + posted; i++) expect((await server.receive({ timeoutMs: 20_000 })).data[0]).toBe(i);
      await Promise.all(errors.map((error) => error.released));
      expect(client.unfinished.operations).toBe(0);
      expect((await failureOf(server.receive({ timeoutMs: 50 }))).code).toBe('ERR_ROCE_TIMEOUT');
      await client.send(Buffer.from('goes on'));
      expect((await server.receive()).data.toString()).toBe('goes on');
    });

    it('an ended write is released when the NIC is done with it, also when the connection ends', async () => {
      const { server, client } = await pair({ receiveDepth: 2 });
      for (let i = 0; i < 2; i++) await client.send(Buffer.from([i]));
      const error = await failureOf(client.send(Buffer.from('refused'), { timeoutMs: 30 }));
      expect(error).toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
      let isReleased = false;
      void error.released.then(() => {
        isReleased = true;
      });
      await new Promise((resolve) => setImmediate(resolve));
      expect(isReleased).toBe(false);
      await client.close();
      await error.released;
      await server.close();
    });

    it('reads into memory of the caller, in place where the NIC reaches it', async () => {
      const memory = Buffer.from(new SharedArrayBuffer(4096));
      memory.fill(0xa5);
      const { client } = await pair({ region: memory });
      const into = client.device.allocate(4096);
      const result = await client.read(into.subarray(8, 1008), 100);
      expect(result.buffer).toBe(into.buffer);
      expect(into.indexOf(0xa5)).toBe(8);
      expect(into.lastIndexOf(0xa5)).toBe(1007);
      const privateMemory = new Uint8Array(16);
      await client.read(privateMemory, 4080);
      expect(privateMemory.every((byte) => byte === 0xa5)).toBe(true);
      const outside = client.read(new Uint8Array(17), 4080);
      expect(await failureOf(outside)).toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
    });

    it('lends a message until it is released; meanwhile the peer has one receive less', async () => {
      const { server, client } = await pair({ receiveDepth: 2 });
      await client.send(Buffer.from('one'));
      await client.send(Buffer.from('two'));
      const first = await server.receive({ view: true });
      const second = await server.receive({ view: true });
      expect([first.data.toString(), second.data.toString()]).toEqual(['one', 'two']);
      const third = client.send(Buffer.from('three'));
      await eventually(() => client.device.counters().rnr_nak_received > 0);
      expect(first.data.toString()).toBe('one');
      first.release();
      first.release();
      await third;
      expect((await server.receive()).data.toString()).toBe('three');
      await server.close();
      expect(second.data.toString()).toBe('two'); // A view outlives the connection: its memory serves nobody else.
      second.release();
    });

    it('gives up connecting to a program that says nothing, and to a listener that answers late; nothing is left', async () => {
      const [serverDevice, clientDevice] = await devices();
      let sockets = 0;
      const silent = createServer((socket) => {
        sockets++;
        socket.on('close', () => sockets--).on('error', () => {});
        socket.resume();
      });
      await new Promise<void>((resolve) => silent.listen(0, SERVER, resolve));
      const { port } = silent.address() as { port: number };
      const error = await failureOf(connect(clientDevice, { host: SERVER, port, timeoutMs: 100 }));
      expect(error).toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
      await error.released;
      await eventually(() => sockets === 0);
      const stop = new AbortController();
      const connecting = failureOf(connect(clientDevice, { host: SERVER, port, signal: stop.signal }));
      await eventually(() => sockets === 1);
      stop.abort();
      await (await connecting).released;
      await eventually(() => sockets === 0);
      silent.close();

      const listener = closeLater(await listen(serverDevice, { port: 0 }));
      const target = { host: SERVER, port: listener.port };
      // Wherever in the set-up it ends, both sides are as before.
      for (let turn = 0; turn < 6; turn++) {
        const give = new AbortController();
        const outcome = connect(clientDevice, { ...target, signal: give.signal }).then(
          (connection) => connection.close(),
          (failure: WaitEnded) => failure.released,
        );
        for (let step = 0; step < turn * 2; step++) await new Promise((resolve) => setImmediate(resolve));
        give.abort();
        await outcome;
        expect(listenersOf(give.signal)).toBe(0);
      }
      const client = closeLater(await connect(clientDevice, target));
      await client.send(Buffer.from('works'));
    });

    it('cq.next gives up, and takes no completion', async () => {
      const [device] = await devices();
      const cq = await device.createCq(4);
      const stop = new AbortController();
      const waiting = [failureOf(cq.next({ signal: stop.signal })), failureOf(cq.wait({ timeoutMs: 10 }))];
      expect(cq.waiting).toBe(2);
      stop.abort();
      const codes = (await Promise.all(waiting)).map(({ code }) => code);
      expect(codes).toEqual(['ERR_ROCE_ABORTED', 'ERR_ROCE_TIMEOUT']);
      expect(cq.waiting).toBe(0);
      expect(listenersOf(stop.signal)).toBe(0);
    });

    it('refuses a misspelt option everywhere, and says what was meant', async () => {
      const { server, client, listener } = await pair();
      const { device } = client;
      const [cq, pd] = [await device.createCq(4), await device.createPd()];
      const wrong: ReadonlyArray<readonly [name: string, meant: RegExp, call: (options: never) => Promise<unknown>]> = [
        ['adress', /did you mean 'address'/, (o: object) => openDevice({ address: '127.0.2.99', ...o })],
        ['recvery', /did you mean 'recovery'/, (o: object) => connect(device, { host: SERVER, port: 1, ...o })],
        ['maxConection', /did you mean 'maxConnections'/, (o: object) => listen(device, { port: 0, ...o })],
        ['sendcq', /did you mean 'sendCq'/, (o: object) => pd.createQp({ sendCq: cq, ...o })],
        ['retryCount', /did you mean 'retryCnt'/, (o: object) => client.qp.modify(o)],
        ['zzz', /it takes depth, maxSge/, (o: object) => pd.createSrq({ depth: 4, ...o })],
        ['iov', /did you mean 'iova'/, (o: object) => pd.regMr(64, 0, o)],
        ['imediate', /did you mean 'immediate'/, (o: object) => client.send(Buffer.alloc(1), o)],
        ['timeout', /did you mean 'timeoutMs'/, (o: object) => server.receive(o)],
        ['sginal', /did you mean 'signal'/, (o: object) => listener.accept(o)],
        ['timeoutMS', /did you mean 'timeoutMs'/, (o: object) => cq.next(o)],
      ].map(([option, meant, call]) => [
        option as string,
        meant as RegExp,
        () => (call as (o: object) => Promise<unknown>)({ [option as string]: 1 }),
      ]);
      for (const [option, meant, call] of wrong) {
        const error = await failureOf(call(undefined as never));
        expect(error, option).toMatchObject({ code: 'ERR_ROCE_UNKNOWN_NAME', message: expect.stringMatching(meant) });
      }
      const outOfRange = { code: 'ERR_ROCE_OUT_OF_RANGE' };
      for (const timeoutMs of [-1, Number.NaN, 2 ** 31]) {
        expect(await failureOf(server.receive({ timeoutMs }))).toMatchObject(outOfRange);
      }
      const noSignal = { signal: {} as AbortSignal };
      expect(await failureOf(server.receive(noSignal))).toMatchObject({ code: 'ERR_ROCE_INVALID_ARGUMENT' });
    });

    it('`await using` closes devices, listeners and connections', async () => {
      let inside: { readonly isClosed: boolean }[] = [];
      {
        await using serverDevice = await openDevice({ ...options, address: SERVER });
        await using clientDevice = await openDevice({ ...options, address: CLIENT });
        await using listener = await listen(serverDevice, { port: 0 });
        const connecting = connect(clientDevice, { host: SERVER, port: listener.port });
        await using server = await listener.accept();
        await using client = await connecting;
        await client.send(Buffer.from('x'));
        {
          using message = await server.receive({ view: true });
          expect(message.data.length).toBe(1);
        }
        inside = [serverDevice, clientDevice, listener, server, client];
        expect(inside.some(({ isClosed }) => isClosed)).toBe(false);
      }
      expect(inside.every(({ isClosed }) => isClosed)).toBe(true);
    });

    it('a stranger on the port of a listener ends no wait', async () => {
      const { listener, client } = await pair();
      const accepting = listener.accept({ timeoutMs: 20_000 });
      const socket = connectTcp(listener.port, SERVER, () => socket.end('nonsense\n'));
      socket.on('error', () => {});
      await eventually(() => listener.counters().refused_mismatch === 1);
      closeLater(await connect(client.device, { host: SERVER, port: listener.port }));
      closeLater(await accepting);
    });
  });
}
