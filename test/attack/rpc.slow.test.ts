/** What a hostile peer may send to an RPC: its own connection ends, is counted, and nothing is thrown at the program. */

import { setMaxListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import {
  BULK,
  CALL,
  CANCEL,
  CREDIT,
  END,
  ERROR,
  type Frame,
  HELLO,
  ITEM,
  NO_DEADLINE,
  RELEASE,
  RESULT,
  writeFrame,
} from '../../packages/rpc/src/frame.js';
import { connectRpc, defineService, type StandardSchema, serveRpc } from '../../packages/rpc/src/index.js';
import { encodeValue } from '../../packages/rpc/src/value.js';
import { connectionPairs } from '../../packages/rpc/test/pair.js';
import type { Connection } from '../../src/index.js';
import { eventually } from '../support/eventually.js';

setMaxListeners(0);
const any: StandardSchema = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } };
const service = defineService({
  hang: { input: any, output: any },
  take: { input: any, output: any, stream: 'input' },
  give: { input: any, output: any, stream: 'output' },
});

function message(frame: Partial<Frame>, body: Uint8Array = new Uint8Array(0)): Buffer {
  const bytes = Buffer.alloc(32 + body.length);
  writeFrame(bytes, { length: body.length, ...frame });
  bytes.set(body, 32);
  return bytes;
}

const hello = message({ kind: HELLO, a: 4, b: 4, length: 1000 });

function call(name: string, id: number): Buffer {
  const head = Buffer.from([name.length, ...Buffer.from(name)]);
  return message({ kind: CALL, call: id, a: NO_DEADLINE }, Buffer.concat([head, ...encodeValue(null)]));
}

describe('a hostile caller', () => {
  const pair = connectionPairs({ address: '127.0.2.6' });

  async function victim() {
    const { server, client } = await pair();
    const served = serveRpc(
      server,
      service,
      {
        hang: () => new Promise(() => {}),
        take: () => new Promise(() => {}),
        give: async function* () {
          for (;;) yield 'x';
        },
      },
      { callsMax: 4, itemsMax: 4, valueBytesMax: 10_000 },
    );
    return { served, server, client };
  }

  const send = (client: Connection, messages: readonly Buffer[]) =>
    Promise.allSettled(messages.map((bytes) => client.send(bytes)));

  it.each<[string, Buffer[]]>([
    ['an empty message', [Buffer.alloc(0)]],
    ['HTTP', [Buffer.from('GET / HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n')]],
    ['a call before HELLO', [call('hang', 1)]],
    ['two HELLOs', [hello, hello]],
    ['a HELLO of nothing', [message({ kind: HELLO, a: 0, b: 0, length: 0 })]],
    ['a kind that there is not', [hello, message({ kind: 10 })]],
    ['a length that is not the body', [hello, message({ kind: CALL, call: 1, length: 5 })]],
    ['a body longer than it was told', [hello, message({ kind: CALL, call: 1, flags: BULK, length: 10_001, rkey: 7 })]],
    [
      'a bulk body at a key that is not its own',
      [hello, message({ kind: CALL, call: 1, flags: BULK, length: 100, rkey: 7 })],
    ],
    ['more calls than it was told', [hello, ...[1, 2, 3, 4, 5].map((id) => call('hang', id))]],
    ['one number twice', [hello, call('hang', 1), call('hang', 1)]],
    [
      'more items than credits',
      [hello, call('take', 1), ...Array(6).fill(message({ kind: ITEM, call: 1 }, Buffer.concat(encodeValue(1))))],
    ],
    [
      'an item behind the end',
      [hello, call('take', 1), message({ kind: END, call: 1 }), message({ kind: ITEM, call: 1 })],
    ],
    [
      'items of no call',
      [hello, ...Array(17).fill(message({ kind: ITEM, call: 9, flags: BULK, length: 10, rkey: 3 }))],
    ],
    ['credits that were never taken', [hello, call('give', 1), message({ kind: CREDIT, call: 1, a: 1000 })]],
    ['the release of what it was not lent', [hello, message({ kind: RELEASE, a: 1 })]],
    ['an answer', [hello, message({ kind: RESULT, call: 1 })]],
  ])('%s ends its connection', async (_, messages) => {
    const { served, server, client } = await victim();
    await send(client, messages);
    await eventually(() => server.isClosed && served.connections === 0);
  });

  it('calls that are malformed inside are answered, counted, and end nothing', async () => {
    const { served, server, client } = await victim();
    const nameless = message({ kind: CALL, call: 1, a: NO_DEADLINE });
    const cut = message({ kind: CALL, call: 2, a: NO_DEADLINE }, Buffer.from([200, 1]));
    const noValue = message({ kind: CALL, call: 3, a: NO_DEADLINE }, Buffer.from('\x04hangxxx'));
    const inherited = call('constructor', 4);
    await send(client, [hello, nameless, cut, noValue, inherited]);
    await eventually(() => served.counters().failed === 4);
    expect(server.isClosed).toBe(false);
    await send(client, [
      message({ kind: CANCEL, call: 77 }),
      message({ kind: END, call: 77 }),
      message({ kind: CREDIT, call: 77, a: 9 }),
    ]);
    await send(client, [call('hang', 5), message({ kind: CANCEL, call: 5 })]);
    await eventually(() => served.counters().cancelled === 1);
    expect(served.counters()).toMatchObject({ calls: 5, refused_peers: 0 });
  });
});

describe('a hostile server', () => {
  const pair = connectionPairs({ address: '127.0.2.7' });

  it.each<[string, Buffer[]]>([
    ['an answer to a call that was not made', [hello, message({ kind: RESULT, call: 99 })]],
    ['a call', [hello, call('hang', 1)]],
    ['an error that is none', [hello, message({ kind: ERROR, call: 1 }, Buffer.from('xx'))]],
    ['an output that is no value', [hello, message({ kind: RESULT, call: 1 }, Buffer.alloc(7))]],
    ['its end', []],
  ])('%s ends the call with an error', async (_, messages) => {
    const { server, client } = await pair();
    const caller = connectRpc(client, service);
    const outcome = caller.methods.hang(null).catch((error: unknown) => error);
    if (messages.length > 0) await server.send(messages[0]);
    if (messages.length > 1) {
      await eventually(() => caller.openCalls === 1);
      await server.send(messages[1]).catch(() => {});
    } else await server.close();
    expect(await outcome).toMatchObject({ code: expect.stringMatching(/^ERR_ROCE_/) });
    expect(caller.openCalls).toBe(0);
  });
});
