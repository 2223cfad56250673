/** Calls of bytes over a stream: nothing that a handler or a peer does may end the others' calls, or the program. */

import { once } from 'node:events';
import { type Duplex, duplexPair } from 'node:stream';
import { expect, test } from 'vitest';
import { type RpcHandler, RpcPeer, type RpcPeerOptions } from '../../../src/storage-rpc/live/rpc-peer.js';
import { encodeRpc } from '../../../src/storage-rpc/stream/rpc-frame.js';

const MIB = 1 << 20;

/** A client, and a server that answers `echo` by itself. */
function pair(handlers: Record<string, RpcHandler>, options: RpcPeerOptions = {}) {
  const [near, far] = duplexPair();
  const handler: RpcHandler = (request, context) => {
    const chosen = handlers[request.toString()];
    return chosen === undefined ? request : chosen(request, context);
  };
  const server = new RpcPeer(far, { ...options, handler });
  return { client: new RpcPeer(near), server, near, far };
}

const call = (client: RpcPeer, name: string, options = {}) => client.call(Buffer.from(name), options);

const THROWN: ReadonlyArray<readonly [string, unknown, RegExp]> = [
  ['nothing', undefined, /without an Error/],
  ['null', null, /without an Error/],
  ['an object without a prototype', Object.create(null), /without an Error/],
  ['a symbol', Symbol('x'), /without an Error/],
  ['a text', 'no disk', /^no disk$/],
  ['an Error without a text', Object.assign(new Error('x'), { message: { a: 1 } }), /without an Error/],
  ['an Error that says too much', new Error('x'.repeat(20 * MIB)), /^x{1024}$/],
];
for (const [what, thrown, message] of THROWN) {
  test(`a handler that rejects with ${what} fails its own call and no other`, async () => {
    const { client } = pair({ fail: () => Promise.reject(thrown) });
    const failed = expect(call(client, 'fail')).rejects.toMatchObject({
      code: 'ERR_ROCE_IO',
      message: expect.stringMatching(message),
    });
    expect((await call(client, 'other')).toString()).toBe('other');
    await failed;
    expect((await call(client, 'after')).toString()).toBe('after');
  });
}

test('an answer that is too long, or no bytes, fails its own call and no other', async () => {
  const { client, near } = pair({
    long: () => Buffer.alloc(16 * MIB + 1),
    longest: () => Buffer.alloc(16 * MIB),
    text: () => 'text' as unknown as Uint8Array,
    nothing: () => undefined as unknown as Uint8Array,
  });
  await expect(call(client, 'long')).rejects.toMatchObject({ message: expect.stringMatching(/too long/) });
  await expect(call(client, 'text')).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
  await expect(call(client, 'nothing')).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
  expect((await call(client, 'longest')).length).toBe(16 * MIB);
  expect(near.destroyed).toBe(false);
});

test('a call can wait as long as it takes, and its handler is not hurried', async () => {
  let answer: (bytes: Buffer) => void = () => {};
  let signal: AbortSignal | undefined;
  const { client } = pair({
    slow: (_, context) => {
      signal = context.signal;
      return new Promise((resolve) => {
        answer = resolve;
      });
    },
  });
  const slow = call(client, 'slow', { timeoutMs: Number.POSITIVE_INFINITY });
  expect((await call(client, 'other', { timeoutMs: 2 ** 31 - 1 })).toString()).toBe('other');
  expect(signal?.aborted).toBe(false);
  answer(Buffer.from('at last'));
  expect((await slow).toString()).toBe('at last');
});

test.each([-1, Number.NaN, 2 ** 31])('a time of %s is refused by its name', async (timeoutMs) => {
  const { client, far } = pair({});
  await expect(call(client, 'x', { timeoutMs })).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
  expect(() => new RpcPeer(far, { timeoutMs })).toThrow('timeoutMs');
});

test('a misspelt option is refused, of a peer and of a call', async () => {
  const { client, far } = pair({});
  await expect(call(client, 'x', { timeoutMS: 3 })).rejects.toMatchObject({ code: 'ERR_ROCE_UNKNOWN_NAME' });
  expect(() => new RpcPeer(far, { concurency: 3 } as RpcPeerOptions)).toThrow('concurrency');
});

/** A handler that waits for its signal and keeps the reason. */
function waiting() {
  const seen: { reason?: unknown } = {};
  const handler: RpcHandler = (_, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        seen.reason = signal.reason;
        reject(signal.reason);
      });
    });
  return { seen, handler };
}

test('a call that is aborted ends at once, and its handler learns of it', async () => {
  const { seen, handler } = waiting();
  const { client } = pair({ wait: handler });
  const abort = new AbortController();
  const waited = call(client, 'wait', { signal: abort.signal });
  expect((await call(client, 'other')).toString()).toBe('other'); // By now the first one runs.
  abort.abort();
  await expect(waited).rejects.toMatchObject({ code: 'ERR_ROCE_ABORTED' });
  await call(client, 'other');
  expect(seen.reason).toMatchObject({ code: 'ERR_ROCE_ABORTED' });
});

test('the deadline of a caller reaches the handler', async () => {
  const { seen, handler } = waiting();
  const { client } = pair({ wait: handler });
  await expect(call(client, 'wait', { timeoutMs: 20 })).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
  await call(client, 'other');
  expect(seen.reason).toBeDefined();
});

test('a request that was cancelled before its turn is not begun', async () => {
  const { handler } = waiting();
  let begun = 0;
  const count: RpcHandler = () => {
    begun++;
    return Buffer.alloc(0);
  };
  const { client } = pair({ wait: handler, count }, { concurrency: 1 });
  const first = new AbortController();
  const second = new AbortController();
  const running = call(client, 'wait', { signal: first.signal });
  const queued = call(client, 'count', { signal: second.signal });
  second.abort();
  first.abort();
  await expect(running).rejects.toMatchObject({ code: 'ERR_ROCE_ABORTED' });
  await expect(queued).rejects.toMatchObject({ code: 'ERR_ROCE_ABORTED' });
  await call(client, 'other');
  expect(begun).toBe(0);
});

test('a stream that ends tells the handlers', async () => {
  const { seen, handler } = waiting();
  const { client, near, far } = pair({ wait: handler });
  const waited = call(client, 'wait');
  await call(client, 'other');
  const closed = once(far, 'close');
  far.destroy();
  near.destroy();
  await expect(waited).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
  await closed;
  expect(seen.reason).toMatchObject({ code: 'ERR_ROCE_CLOSED' });
});

test('a peer that fetches no answers gets no more of its requests worked on', async () => {
  const [near, far] = duplexPair();
  let served = 0;
  new RpcPeer(far, {
    concurrency: 4,
    handler: () => {
      served++;
      return Buffer.alloc(MIB);
    },
  });
  const request = (id: bigint) => encodeRpc({ kind: 'request', id, deadlineMs: 0xffff_ffff }, Buffer.alloc(1));
  for (let id = 1n; id <= 100n; id++) near.write(request(id));
  await settled(() => served);
  expect(served).toBeLessThanOrEqual(6); // Four at a time, and what the stream itself takes.
  near.resume();
  await settled(() => served);
  expect(served).toBe(100);
});

test('a peer that uses the number of an open call again loses its stream', async () => {
  const { handler } = waiting();
  const [near, far]: [Duplex, Duplex] = duplexPair();
  new RpcPeer(far, { handler });
  const failed = once(far, 'error');
  const request = encodeRpc({ kind: 'request', id: 1n, deadlineMs: 0xffff_ffff }, Buffer.alloc(1));
  near.write(request);
  near.write(request);
  expect((await failed)[0]).toMatchObject({ code: 'ERR_ROCE_MISMATCH' });
});

/** Resolves when the value has stayed for a hundred turns of the event loop. */
async function settled(value: () => number): Promise<void> {
  for (let last = -1, same = 0; same < 100; same = value() === last ? same + 1 : 0) {
    last = value();
    await new Promise(setImmediate);
  }
}
