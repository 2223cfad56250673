/** A thousand readers of one owner, which is a process. */

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { isBuilt, isLinux, rocev2Starter } from '../../../test/e2e/executable.js';
import { devicesAt } from '../../../test/support/devices.js';
import { type KvClient, openKv } from '../src/index.js';

const ADDRESS = '127.0.4.9';
/** As many as `rocev2 kv serve` takes. */
const READERS = 1024;
const KIB = 1024;
/** For each reader: receive buffers of 128 KiB, and tables. */
const BYTES_PER_READER_MAX = 512 * KIB;

const rocev2 = rocev2Starter();
const device = devicesAt(ADDRESS);

it.runIf(isBuilt && isLinux)(
  `${READERS} readers take bounded memory of the owner; one more is told so, and disturbs nobody`,
  async () => {
    const sizes = ['--memory', '8MiB', '--entries', '100', '--value-max', '1KiB'];
    const owner = rocev2('kv', 'serve', '--bind', ADDRESS, '-p', '0', '--engine', 'inline', ...sizes);
    await owner.writes('stderr', /Ctrl-C ends it/);
    const port = Number((await owner.writes('stderr', /TCP port (\d+)/))[1]);
    const memory = () =>
      Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${owner.process.pid}/status`, 'utf8'))![1]) * KIB;
    const here = await device();
    const open = () => openKv<string>({ device: here, host: ADDRESS, port, codec: 'string' });
    const first = await open();
    await first.set('k', 'v');
    const before = memory();
    const readers: KvClient<string>[] = [first];
    while (readers.length < READERS) {
      // As many at a time as may wait to be accepted.
      const count = Math.min(32, READERS - readers.length);
      readers.push(...(await Promise.all(Array.from({ length: count }, open))));
    }
    for (const reader of readers) expect(await reader.get('k')).toBe('v');
    expect((memory() - before) / READERS).toBeLessThan(BYTES_PER_READER_MAX);
    await expect(open()).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT', message: /1024 connections .* as many as/ });
    expect(await readers[READERS - 1].get('k')).toBe('v');
    console.log(
      `${Math.round((memory() - before) / READERS / KIB)} KiB of the owner's memory for each of ${READERS} readers`,
    );
    await readers.pop()!.close();
    const next = async () => {
      for (;;) {
        const reader = await open().catch(() => undefined);
        if (reader !== undefined) return reader;
      }
    };
    expect(await (await next()).get('k')).toBe('v');
  },
);
