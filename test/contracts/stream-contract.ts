/** What `connection.stream()` and `connection.webStreams()` must do, wherever the NIC runs. */

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { PassThrough, Readable, Transform, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { Connection, ConnectionOptions } from '../../src/index.js';
import { eventually } from '../support/eventually.js';
import type { EngineUnderTest } from './connection-contract.js';

const OPEN = 1;
const DATA = 2;
const CREDIT = 3;
const FIN = 4;
const FIN_ACK = 6;

/** Bytes that differ from place to place. */
function pattern(bytes: number): Buffer {
  const data = Buffer.alloc(bytes);
  for (let at = 0; at + 4 <= bytes; at += 4) data.writeUInt32LE((Math.imul(at, 2654435761) ^ at) >>> 0, at);
  return data;
}

function digest(data: Uint8Array): string {
  return createHash('sha1').update(data).digest('hex');
}

/** All that comes until the end. Unlike `buffer` of node:stream/consumers it leaves the other direction alone. */
function collect(stream: Readable): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    stream
      .on('data', (bytes: Buffer) => parts.push(bytes))
      .on('end', () => resolve(Buffer.concat(parts)))
      .on('error', reject);
  });
}

/** A stream of chunks of odd sizes. */
function chunks(data: Buffer, size: number): Readable {
  return Readable.from(
    (function* () {
      for (let at = 0; at < data.length; at += size) yield data.subarray(at, at + size);
    })(),
  );
}

export function streamContract(name: string, { api, options, server: SERVER, client: CLIENT }: EngineUnderTest): void {
  const { connect, listen, openDevice } = api;
  const open: Array<{ close(): Promise<void> }> = [];

  async function pair(both: ConnectionOptions = {}): Promise<[server: Connection, client: Connection]> {
    const serverDevice = await openDevice({ ...options, address: SERVER, udpPort: 0 });
    const clientDevice = await openDevice({ ...options, address: CLIENT, udpPort: 0 });
    open.push(serverDevice, clientDevice);
    const listener = await listen(serverDevice, { port: 0, ...both });
    return Promise.all([listener.accept(), connect(clientDevice, { host: SERVER, port: listener.port, ...both })]);
  }

  /** What a raw message does to a stream. */
  async function errorAfter(send: (client: Connection) => Promise<unknown>, both: ConnectionOptions = {}) {
    const [server, client] = await pair(both);
    const stream = server.stream();
    const failed = once(stream, 'error');
    stream.on('data', () => {});
    await send(client).catch(() => {}); // The stream may be gone before its NIC acknowledges.
    const [error] = await failed;
    await eventually(() => server.isClosed);
    return error as Error;
  }

  function openFrame(window = 8, frameBytes = 65_536): Buffer {
    const body = Buffer.alloc(16);
    body.write('RoSt');
    body[4] = 1;
    body.writeUInt32LE(window, 8);
    body.writeUInt32LE(frameBytes, 12);
    return body;
  }

  describe(name, () => {
    afterEach(async () => {
      for (const thing of open.splice(0).reverse()) await thing.close();
    });

    it('carries megabytes both ways at once through pipeline, and closes the connections when both sides have ended', async () => {
      const [server, client] = await pair();
      const [there, back] = [pattern(4 << 20), pattern(1 << 20)];
      const [a, b] = [server.stream(), client.stream()];
      const [gotThere, gotBack] = await Promise.all([
        collect(a),
        collect(b),
        pipeline(chunks(there, 100_003), b),
        pipeline(chunks(back, 777), a),
      ]);
      expect([digest(gotThere), digest(gotBack)]).toEqual([digest(there), digest(back)]);
      await eventually(() => server.isClosed && client.isClosed);
      expect([a.destroyed, b.destroyed, a.errored, b.errored]).toEqual([true, true, null, null]);
    });

    it('works with receives that are few and small', async () => {
      const [server, client] = await pair({ receiveDepth: 8, messageBytesMax: 100 });
      const data = pattern(10_000);
      const received = collect(server.stream());
      const stream = client.stream();
      stream.end(data);
      expect(digest(await received)).toBe(digest(data));
    });

    it('a slow reader stops the writer, and nothing is lost', async () => {
      const [server, client] = await pair({ receiveDepth: 16, messageBytesMax: 4096 });
      const reader = server.stream({ highWaterMark: 4096 });
      const writer = client.stream({ highWaterMark: 4096 });
      const data = pattern(1 << 20);
      let written = 0;
      const writing = pipeline(
        chunks(data, 4096),
        new Transform({
          highWaterMark: 1,
          transform: (chunk: Buffer, _, done) => {
            written += chunk.length;
            done(null, chunk);
          },
        }),
        writer,
      );
      let before = -1;
      await eventually(
        () => {
          const isStill = written === before;
          before = written;
          return isStill && written > 0;
        },
        { everyMs: 200 },
      );
      // 11 receives, the buffers of both streams and of what feeds them: nothing near the whole.
      expect(written).toBeLessThan(200_000);
      expect(client.device.counters().rnr_nak_received).toBe(0);
      expect(digest(await collect(reader))).toBe(digest(data));
      reader.end();
      await writing;
    });

    it('one direction flows while the other is stopped by its reader', async () => {
      const [server, client] = await pair({ receiveDepth: 8, messageBytesMax: 1024 });
      const [a, b] = [server.stream({ highWaterMark: 1024 }), client.stream({ highWaterMark: 1024 })];
      b.write(pattern(200_000)); // Nobody reads it.
      const back = pattern(300_000);
      const received = collect(b);
      a.end(back);
      expect(digest(await received)).toBe(digest(back));
      a.destroy();
      await once(b, 'close').catch(() => {});
    });

    it('ends one direction and goes on with the other', async () => {
      const [server, client] = await pair();
      const [a, b] = [server.stream(), client.stream()];
      b.end('question');
      expect((await collect(a)).toString()).toBe('question');
      expect(a.writable).toBe(true);
      const answer = collect(b);
      a.end('answer');
      expect((await answer).toString()).toBe('answer');
    });

    it('tells the peer why it was destroyed; a peer that leaves without an end is an error, too, and never an end', async () => {
      const [server, client] = await pair();
      const [a, b] = [server.stream(), client.stream()];
      let hasEnded = false;
      a.on('data', () => {}).on('end', () => {
        hasEnded = true;
      });
      const failed = once(a, 'error');
      b.on('error', () => {});
      b.write(pattern(100_000));
      b.destroy(new Error('the disk is full'));
      const [error] = await failed;
      expect(error).toMatchObject({ code: 'ERR_ROCE_CONNECT', message: expect.stringMatching(/the disk is full/) });
      expect(hasEnded).toBe(false);
      await eventually(() => server.isClosed && client.isClosed);

      const [server2, client2] = await pair();
      const c = server2.stream();
      c.on('data', () => {}).on('end', () => {
        hasEnded = true;
      });
      const left = once(c, 'error');
      client2.stream().write('half of');
      await client2.close();
      expect((await left)[0]).toMatchObject({ code: 'ERR_ROCE_CONNECT' });
      expect(hasEnded).toBe(false);
    });

    it('an error of a pipeline reaches the other side', async () => {
      const [server, client] = await pair();
      const a = server.stream();
      const seen = once(a, 'error');
      a.resume();
      const broken = new PassThrough();
      const piping = pipeline(broken, client.stream());
      broken.write('begun');
      broken.destroy(new Error('source broke'));
      await expect(piping).rejects.toThrow('source broke');
      expect((await seen)[0].message).toMatch(/source broke/);
    });

    it('keeps many small writes in order, and several in a frame', async () => {
      const [server, client] = await pair();
      const received = collect(server.stream());
      const stream = client.stream();
      let expected = '';
      for (let i = 0; i < 5000; i++) {
        expected += `${i},`;
        stream.write(`${i},`);
      }
      stream.end();
      expect((await received).toString()).toBe(expected);
      expect(client.device.counters().tx_packets).toBeLessThan(1000);
    });

    it('is a pair of web streams: pipeTo, backpressure, a reader with its own buffer, half close', async () => {
      const [server, client] = await pair({ receiveDepth: 16, messageBytesMax: 4096 });
      const [a, b] = [server.webStreams(), client.webStreams()];
      const data = pattern(300_000);
      const sending = new Response(data).body!.pipeTo(b.writable);
      const reader = a.readable.getReader({ mode: 'byob' });
      const parts: Uint8Array[] = [];
      for (;;) {
        const { done, value } = await reader.read(new Uint8Array(1000));
        if (value !== undefined) parts.push(value.slice());
        if (done) break;
      }
      await sending;
      expect(digest(Buffer.concat(parts))).toBe(digest(data));
      const writer = a.writable.getWriter();
      void writer.write(Buffer.from('answer'));
      void writer.close();
      expect(await new Response(b.readable as ReadableStream).text()).toBe('answer');
      await eventually(() => server.isClosed && client.isClosed);
    });

    it('web streams: aborting tells the peer, cancelling throws away what still comes', async () => {
      const [server, client] = await pair();
      const [a, b] = [server.webStreams(), client.webStreams()];
      await a.readable.cancel();
      const writer = b.writable.getWriter();
      writer.closed.catch(() => {}); // It is told through the writes, too.
      await writer.write(pattern(8 << 20)); // More than all receives.
      const reader = b.readable.getReader();
      reader.closed.catch(() => {});
      const refused = expect(reader.read()).rejects.toThrow(/no more/);
      await a.writable.abort(new Error('no more'));
      await refused;
      await expect(writer.write(Buffer.from('x'))).rejects.toThrow(/no more/);
      await eventually(() => server.isClosed && client.isClosed);
    });

    it('takes the messages of the connection, once', async () => {
      const [server, client] = await pair();
      const stream = server.stream();
      const busy = { code: 'ERR_ROCE_BUSY' };
      expect(() => server.stream()).toThrow(/a stream/);
      await expect(server.send(Buffer.from('x'))).rejects.toMatchObject(busy);
      await expect(server.receive()).rejects.toMatchObject(busy);
      expect(() => client.stream({ highWatermark: 1 } as object)).toThrow(/did you mean 'highWaterMark'/);
      const [few] = await pair({ receiveDepth: 4 });
      expect(() => few.stream()).toThrow(/raise `receiveDepth`/);
      stream.destroy();
      await once(stream, 'close');
    });

    it.each<[string, (client: Connection) => Promise<unknown>, RegExp]>([
      ['a message that is not a frame', (c) => c.send(Buffer.from('hello')), /not a frame/],
      ['data before OPEN', (c) => c.send(Buffer.from('x'), { immediate: (DATA << 24) >>> 0 }), /out of turn/],
      ['an OPEN of something else', (c) => c.send(Buffer.from('GET'), { immediate: OPEN << 24 }), /no OPEN/],
      ['an OPEN of nothing', (c) => c.send(openFrame(0), { immediate: OPEN << 24 }), /0 frames/],
      ['an OPEN of tiny frames', (c) => c.send(openFrame(8, 1), { immediate: OPEN << 24 }), /1 bytes/],
      ['credits from nowhere', (c) => opened(c, [CREDIT, 1]), /credits that it never had/],
      ['a frame of the future', (c) => opened(c, [77, 0]), /frame 77/],
      ['two OPENs', (c) => opened(c, [OPEN, 0]), /out of turn/],
      ['an end that is known before it is there', (c) => opened(c, [FIN_ACK, 0]), /an end that there was not/],
      ['two ends', (c) => opened(c, [FIN, 0], [FIN, 0]), /ended twice/],
      ['data behind the end', (c) => opened(c, [FIN, 0], [DATA, 0]), /after its end/],
    ])('a hostile peer: %s ends the stream, and nothing else', async (_, send, why) => {
      expect((await errorAfter(send)).message).toMatch(why);
    });

    it('a hostile peer: more data than credits ends the stream', async () => {
      const [server, client] = await pair({ receiveDepth: 8, messageBytesMax: 256 });
      const stream = server.stream({ highWaterMark: 1 });
      const failed = once(stream, 'error');
      await client.send(openFrame(), { immediate: OPEN << 24 });
      // Nobody reads: three frames are granted, and the rest fits into the receives that are kept for control.
      const sends = Array.from({ length: 5 }, () => client.send(Buffer.alloc(64), { immediate: DATA << 24 }));
      await Promise.allSettled(sends);
      expect((await failed)[0].message).toMatch(/more than its credits/);
    });

    it('a stream nobody reads or writes holds nothing up when it is destroyed', async () => {
      const [server, client] = await pair();
      const sink = new Writable({ write: () => {} }); // Takes the first chunk, and never is done with it.
      server
        .stream()
        .on('error', () => {})
        .pipe(sink);
      const stream = client.stream();
      stream.write(pattern(16 << 20));
      await eventually(() => sink.writableLength > 0);
      stream.destroy();
      await once(stream, 'close');
      expect(client.unfinished.operations).toBe(0);
      await eventually(() => server.isClosed);
    });
  });

  /** OPEN, then frames without a body. */
  async function opened(client: Connection, ...frames: Array<readonly [kind: number, credits: number]>) {
    await client.send(openFrame(), { immediate: OPEN << 24 });
    for (const [kind, credits] of frames) {
      const body = kind === DATA ? Buffer.from('x') : Buffer.alloc(0);
      await client.send(body, { immediate: ((kind << 24) | credits) >>> 0 });
    }
  }
}
