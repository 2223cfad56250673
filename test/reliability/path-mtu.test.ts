/**
 * The path MTU drops under a live connection, and packets are dropped in silence: what is too large fails, the error names the path MTU that is used,
 * both ends learn of it, and no part of a message is taken for the whole. In shrinking-link.slow.test.ts the system knows of the drop.
 */

import { describe, expect, it } from 'vitest';
import { connect, listen, openDevice } from '../../src/index.js';
import { createPair } from '../support/pair.js';
import { lay } from './unruly-wire.js';

const BYTES = 20_000;

it('packets that are lost in silence: the error names the path MTU that is used, and the other end learns of it', async () => {
  const server = await openDevice({ address: '127.0.7.1', udpPort: 0 });
  const client = await openDevice({ address: '127.0.7.2', udpPort: 0, loss: 'host>wire:opcode=SEND_FIRST' });
  const listener = await listen(server, { port: 0 });
  const [accepted, connection] = await Promise.all([
    listener.accept(),
    connect(client, { host: '127.0.7.1', port: listener.port, timeout: 10, retryCnt: 2 }),
  ]);
  await connection.send(Buffer.from('small'));
  expect((await accepted.receive()).data.toString()).toBe('small');
  const waiting = expect(accepted.receive()).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
  await expect(connection.send(Buffer.alloc(BYTES))).rejects.toMatchObject({
    code: 'ERR_ROCE_COMPLETION',
    message: expect.stringContaining('perhaps only large ones: the path MTU of the connection is 4096'),
  });
  await waiting;
  expect(client.counters().fault_dropped).toBeGreaterThan(0);
  expect(server.counters().fault_dropped).toBe(0);
  await client.close();
  await server.close();
});

describe.each(['go-back-n', 'selective-repeat'] as const)(
  'a path that drops datagrams above 600 bytes in silence, %s',
  (recovery) => {
    it('fails what is larger, takes no part of it for a message, and brought all that is smaller', async () => {
      const pair = await createPair({ recovery, attrA: { timeout: 6 } });
      const { a, b, events } = pair;
      let isNarrow = false;
      lay(a.host, events, 10e9, ({ length }) => (isNarrow && length > 600 ? [] : [{ to: b.host, afterNs: 2000 }]));
      for (let k = 0; k < 4; k++) b.qp.postRecv({ wrId: k, sges: [b.mr.sge(k * 8192, 8192)] });
      const send = (bytes: number) => a.qp.postSend({ opcode: 'SEND', sges: [a.mr.sge(0, bytes)] });
      send(8000);
      expect(pair.completions(a.cq, 1)).toMatchObject([{ status: 0 }]);
      isNarrow = true;
      send(500);
      send(8000);
      send(500);
      expect(pair.completions(a.cq, 3).map(({ statusName }) => statusName)).toEqual([
        'SUCCESS',
        'RETRY_EXC_ERR',
        'WR_FLUSH_ERR',
      ]);
      expect(b.recvCq.poll().map(({ wrId, byteLen }) => [wrId, byteLen])).toEqual([[0, 8000], [1, 500]]); // biome-ignore format: short
    });
  },
);
