/** Readers whose owner goes and comes back, on sockets. */

import { describe, expect, it } from 'vitest';
import { connect, listen } from '../../../src/index.js';
import { isBuilt, rocev2Starter } from '../../../test/e2e/executable.js';
import { devicesAt } from '../../../test/support/devices.js';
import { eventually } from '../../../test/support/eventually.js';
import { freePort } from '../../../test/support/free-port.js';
import { defineService, serveRpc } from '../../rpc/src/index.js';
import { type OpenKvOptions, openKv, serveKv } from '../src/index.js';

const ADDRESS = '127.0.4.4';
const SIZES = { bytes: 4 << 20, entries: 1000, valueBytesMax: 4096 };
/** No test comes near it. */
const LONG_MS = 50_000;

const device = devicesAt(ADDRESS);

const serve = async (port = 0) =>
  serveKv<string>({ device: await device(), port, host: ADDRESS, codec: 'string', ...SIZES });
const open = async (port: number, options: Partial<OpenKvOptions<string>> = {}) =>
  openKv<string>({ device: await device(), host: ADDRESS, port, codec: 'string', reconnectMs: LONG_MS, ...options });

describe('a reader that reconnects', () => {
  it('finds the next owner at the place of the first', async () => {
    const first = await serve();
    const { port } = first;
    const reader = await open(port);
    const version = await reader.set('k', 'old');
    await first.close();
    const gets = reader.getMany(['k', 'new']);
    const second = await serve(port);
    expect((await gets)[0]).toBeUndefined();
    await second.set('k', 'other');
    expect(await reader.get('k')).toBe('other');
    expect(await reader.compareAndSet('k', version, 'third')).toBeUndefined();
    expect(reader.counters()).toMatchObject({ reconnects: 1 });
  });

  it('hears `lost` between the changes of two owners', async () => {
    const first = await serve();
    const { port } = first;
    const reader = await open(port);
    const events = reader.watch();
    const before = events.next();
    await reader.set('k', '1');
    expect((await before).value).toMatchObject({ kind: 'set' });
    const between = events.next();
    await first.close();
    const second = await serve(port);
    expect((await between).value).toMatchObject({ kind: 'lost', version: 0 });
    const version = await second.set('k', '2');
    expect((await events.next()).value).toMatchObject({ kind: 'set', version });
    await events.return?.();
  });

  it('goes on when its key was revoked', async () => {
    const owner = await serve();
    const reader = await open(owner.port);
    await owner.set('k', 'v');
    await owner.revoke();
    expect(await reader.get('k')).toBe('v');
  });

  it('gives up after its time, and tries again at the next call', async () => {
    const first = await serve();
    const { port } = first;
    const reader = await open(port, { reconnectMs: 50 });
    await first.close();
    await expect(reader.get('k')).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
    await expect(reader.set('k', 'v')).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
    await serve(port);
    expect(await reader.set('k', 'v')).toBeGreaterThan(0);
  });

  it('ends its attempts when a caller gives up, it is closed, or its device is', async () => {
    const first = await serve();
    const { port } = first;
    const here = await device();
    const reader = await open(port, { device: here });
    const other = await open(port, { device: here });
    await first.close();
    await expect(reader.get('k', { timeoutMs: 1 })).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
    const waiting = expect(reader.get('k')).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
    const onDevice = expect(other.get('k')).rejects.toBeInstanceOf(Error);
    await reader.close();
    await waiting;
    await here.close();
    await onDevice;
  });

  it('does not take a server of something else for its owner', async () => {
    const first = await serve();
    const { port } = first;
    const reader = await open(port);
    await first.close();
    const listener = await listen(await device(), { port, host: ADDRESS });
    const got = expect(reader.get('k')).rejects.toBeInstanceOf(Error);
    serveRpc(await listener.accept(), defineService({}), {});
    await got;
    await listener.close();
  });

  it('refuses a time that cannot be', async () => {
    await expect(open(1, { reconnectMs: -1 })).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
  });
});

describe.runIf(isBuilt)('the process of an owner', () => {
  const rocev2 = rocev2Starter();

  it('is killed, and the next one serves the reader of the first', async () => {
    const port = await freePort();
    const start = async () => {
      const program = rocev2('kv', 'serve', '--bind', ADDRESS, '-p', String(port), '--memory', '8MiB');
      await program.writes('stderr', /Ctrl-C ends it/);
      return program;
    };
    const first = await start();
    const reader = await open(port);
    await reader.set('k', 'v');
    expect(await reader.get('k')).toBe('v');
    first.kill('SIGKILL');
    await first.ended();
    const gets = reader.getMany(['k', 'k']);
    await start();
    expect(await gets).toEqual([undefined, undefined]);
    await reader.set('k', 'w');
    expect(await reader.get('k')).toBe('w');
    expect(reader.counters().reconnects).toBeGreaterThan(0);
  });
});

describe('refused readers', () => {
  it('are reported once, and counted', async () => {
    const notices: string[] = [];
    const onNotice = (notice: string) => void notices.push(notice);
    const owner = await serveKv({ device: await device(), port: 0, host: ADDRESS, ...SIZES, onNotice });
    const reader = await openKv({ device: await device(), host: ADDRESS, port: owner.port });
    const other = { host: ADDRESS, port: owner.port, recovery: 'selective-repeat' } as const;
    for (let i = 0; i < 3; i++) await expect(connect(await device(), other)).rejects.toThrow(/recovery/);
    await eventually(() => owner.refusedReaders === 3);
    expect(notices).toEqual([expect.stringMatching(/^a reader at 127\.0\.4\.4:\d+ was refused: .*only counted\)$/)]);
    expect(await reader.get('k')).toBeUndefined();
  });
});
