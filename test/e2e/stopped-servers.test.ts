/**
 * Servers that are stopped under their clients, for a second and until the clients notice it: clients wait, or fail in
 * the time that they set, and continue when the server does. Nothing that was acknowledged is lost.
 */

import { describe, expect, it } from 'vitest';
import { openKv } from '../../packages/kv/src/index.js';
import { openNvme } from '../../packages/nvme/src/live/open-nvme.js';
import { openDevice } from '../../src/index.js';
import { eventually } from '../support/eventually.js';
import { isBuilt, rocev2Starter } from './executable.js';

const SERVER = '127.0.6.41';
const CLIENT = '127.0.6.42';
const SECOND_MS = 1000;
const BLOCK = 4096;
const BLOCKS = 256;
const start = rocev2Starter();

/** Writes all the time, one after another. */
function writing(write: (number: number) => Promise<unknown>) {
  let acknowledged = 0;
  let isEnded = false;
  const ended = (async () => {
    for (; !isEnded; acknowledged++) await write(acknowledged);
  })();
  return {
    get acknowledged() {
      return acknowledged;
    },
    /** Fails if a write does. */
    continues: async () => {
      const before = acknowledged;
      await Promise.race([ended, eventually(() => acknowledged > before + 20)]);
    },
    end: () => {
      isEnded = true;
      return ended;
    },
  };
}

const blockOf = (number: number) => Buffer.alloc(BLOCK, `block ${number} `);
// timer: the stop itself
const stopped = () => new Promise((resolve) => setTimeout(resolve, SECOND_MS));

describe.runIf(isBuilt)('an NVMe target that is stopped', () => {
  it.each([
    ['TCP', 4441],
    ['RDMA', 4442],
  ] as const)('over %s: its host continues with all that was acknowledged', async (transport, port) => {
    const disk = ['--disk', 'memory', '--size', `${BLOCKS * BLOCK}`];
    const target = start('nvme', 'target', ...disk, '--bind', SERVER, '-p', String(port));
    await target.writes('stderr', /Ctrl-C/);
    const notices: string[] = [];
    await using device = transport === 'RDMA' ? await openDevice({ address: CLIENT }) : undefined;
    await using opened = await openNvme({
      address: SERVER,
      port,
      nqn: 'nqn.2026-11.rocev2:disk',
      keepAliveMs: 2 * SECOND_MS,
      onNotice: (notice) => notices.push(notice),
      device,
    });
    const writes = writing((number) => opened.write((number % BLOCKS) * BLOCK, blockOf(number)));
    await writes.continues();
    target.kill('SIGSTOP');
    await stopped();
    target.kill('SIGCONT');
    await writes.continues();

    target.kill('SIGSTOP');
    await eventually(() => notices.length > 0);
    target.kill('SIGCONT');
    await writes.continues();
    await writes.end();
    const last = writes.acknowledged - 1;
    const into = Buffer.alloc(BLOCK);
    for (let number = Math.max(0, last - BLOCKS + 1); number <= last; number++) {
      await opened.read((number % BLOCKS) * BLOCK, BLOCK, into);
      expect(into.equals(blockOf(number)), `block ${number}`).toBe(true);
    }
  });
});

describe.runIf(isBuilt)('an owner of a key-value store that is stopped', () => {
  it('its clients fail in their time or wait, and continue with all that was acknowledged', async () => {
    const owner = start('kv', 'serve', '--bind', SERVER, '-p', '18641');
    await owner.writes('stderr', /Ctrl-C/);
    await using device = await openDevice({ address: CLIENT, udpPort: 0 });
    const place = { device, host: SERVER, port: 18_641, codec: 'string' } as const;
    await using kv = await openKv<string>({ ...place, reconnectMs: 120 * SECOND_MS });
    const writes = writing((number) => kv.set(`key ${number}`, String(number)));
    await writes.continues();
    owner.kill('SIGSTOP');
    await stopped();
    owner.kill('SIGCONT');
    await writes.continues();

    owner.kill('SIGSTOP');
    const late = kv.set('late', 'x', { timeoutMs: SECOND_MS });
    await expect(late).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
    const waiting = kv.set('waiting', 'x');
    owner.kill('SIGCONT');
    expect(await waiting).toBeGreaterThan(0);
    expect(await kv.get('waiting')).toBe('x');
    await writes.continues();
    await writes.end();
    for (let number = 0; number < writes.acknowledged; number++)
      expect(await kv.get(`key ${number}`)).toBe(String(number));
  });
});
