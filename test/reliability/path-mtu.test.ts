/**
 * The path MTU drops under a live connection. Where the system knows of it the error names both; where packets are dropped in silence it names what is
 * used. Either way what is too large fails, both ends learn of it, and no part of a message is taken for the whole.
 */

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { connect, listen, openDevice } from '../../src/index.js';
import { isBuilt } from '../e2e/executable.js';
import { createPair } from '../support/pair.js';
import { repeated } from '../support/repetitions.js';
import { lay } from './unruly-wire.js';

/** Far more than it takes; machines are busy at times. */
const LIMIT_MS = 100_000;
const FIXTURE = fileURLToPath(new URL('./fixtures/shrinking-link.mjs', import.meta.url));
const BYTES = 20_000;
const ENGINES = [
  ['inline, node:dgram', { engine: 'inline', io: 'dgram' }],
  ['inline, sendmmsg', { engine: 'inline', io: 'mmsg' }],
  ['worker', { engine: 'worker', io: 'mmsg' }],
] as const;

/** A user that may make a network namespace, and the tools for it. */
const hasNamespaces = spawnSync('unshare', ['-rn', 'ip', 'link', 'show', 'lo']).status === 0;

describe.runIf(isBuilt && hasNamespaces)(
  'the MTU of the link drops to 1500 under a connection of path MTU 4096',
  () => {
    it.each(repeated(1, ENGINES))(
      '%s: the error names both, both ends learn of it, and a new connection fits',
      { timeout: 2 * LIMIT_MS },
      (_, device) => {
        const { stdout, stderr } = spawnSync(
          'unshare',
          ['-rn', process.execPath, FIXTURE, JSON.stringify({ device, bytes: BYTES })],
          {
            encoding: 'utf8',
            timeout: LIMIT_MS,
          },
        );
        expect(stderr).toBe('');
        expect(JSON.parse(stdout)).toEqual({
          mtu: 4096,
          before: 'done',
          received: BYTES,
          small: 'done',
          large: expect.stringMatching(
            /^ERR_ROCE_COMPLETION .*the path MTU of the connection is 4096, and no more than 1024 gets through to 127\.0\.0\.1 by now: connect again with mtu: 1024/,
          ),
          other: 'ERR_ROCE_CLOSED the peer has closed the connection',
          afterwards: 'done',
          receivedAgain: BYTES,
        });
      },
    );
  },
);

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
