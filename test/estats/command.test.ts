import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../../packages/cli/test/run-in-process.js';
import { parseWatched } from '../../packages/command/src/programs/watched.js';
import { connect, listen } from '../../src/cm/listen-connect.js';
import { batchedUdpAvailable } from '../../src/dgram-ext/index.js';
import type { RdmaDevice } from '../../src/verbs/device.js';
import type { Dump } from '../../src/verbs/estats/dump-log.js';
import type { EstatsSnapshot } from '../../src/verbs/estats/endpoint-document.js';
import { openDevice } from '../../src/verbs/open-device.js';
import { documentOf } from '../support/documents.js';

const SERVER = '127.57.1.1';
const CLIENT = '127.57.1.2';
const [OWNER, REQUESTER] = ['127.57.1.3', '127.57.1.4'];
const TCP_PORT = 18579;
const WRITES = 30;

let runtime: string;
let before: string | undefined;
let devices: RdmaDevice[] = [];

/** Two endpoints on loopback in this process, with telemetry; the client has written and read. */
beforeAll(async () => {
  before = process.env['XDG_RUNTIME_DIR'];
  runtime = await mkdtemp(path.join(os.tmpdir(), 'estats-'));
  process.env['XDG_RUNTIME_DIR'] = runtime;
  devices = [
    await openDevice({ address: SERVER, estats: true }),
    await openDevice({ address: CLIENT, estats: { http: `${CLIENT}:0` } }),
  ];
  const listener = await listen(devices[0], { port: TCP_PORT, host: SERVER, region: Buffer.alloc(65536) });
  const [, client] = await Promise.all([listener.accept(), connect(devices[1], { host: SERVER, port: TCP_PORT })]);
  for (let n = 0; n < WRITES; n++) await client.write(Buffer.alloc(1000), 0);
  await client.read(0, 1000);
});

afterAll(async () => {
  for (const device of devices) await device.close();
  if (before === undefined) delete process.env['XDG_RUNTIME_DIR'];
  else process.env['XDG_RUNTIME_DIR'] = before;
  await rm(runtime, { recursive: true });
});

async function json<T>(...args: string[]): Promise<T> {
  const { exitCode, stdout, stderr } = await run(['estats', ...args, '--json']);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return documentOf(`estats-${args[0]}`, stdout)['endpoints'] as T;
}

async function text(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await run(['estats', ...args]);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return stdout;
}

describe('rocev2 estats', () => {
  it('top shows every connection of every endpoint, and where the time goes', async () => {
    const shown = await text('top');
    expect(shown).toContain(`${process.pid} on ${SERVER}`);
    expect(shown).toMatch(/RDMA_WRITE +SUCCESS +30 .* T\d-T\d \d+ %/);
    const snapshots = (await json<unknown[]>('top')).map(parseWatched);
    expect(snapshots.map(({ address }) => address).sort()).toEqual([SERVER, CLIENT]);
  });

  it.skipIf(batchedUdpAvailable() !== undefined)(
    'top counts copies of each connection whose memory is mapped',
    async () => {
      const options = { udpPort: 0, io: 'auto', estats: true } as const;
      await using owner = await openDevice({ address: OWNER, ...options });
      await using requester = await openDevice({ address: REQUESTER, ...options });
      const listener = await listen(owner, { port: 0, host: OWNER, region: owner.allocate(1000) });
      const dial = connect(requester, { host: OWNER, port: listener.port });
      const [, client] = await Promise.all([listener.accept(), dial]);
      const own = await client.register(1000);
      await client.write(own, 0);
      await client.read(own);
      expect(await text('top', '-e', REQUESTER)).toMatch(
        /^ {4}2 WRITEs, READs and atomics \(1\.\d+ KiB\) were copies to mapped regions, without packets$/m,
      );
      const copiesAt = async (address: string) =>
        (await json<unknown[]>('top', '-e', address))
          .map(parseWatched)
          .map((of) => (of as EstatsSnapshot).qps[0].copies);
      expect(await copiesAt(REQUESTER)).toEqual([{ operations: 2, bytes: 2000 }]);
      expect(await copiesAt(CLIENT)).toEqual([undefined]);
      await listener.close();
    },
  );

  it('top refreshes on a terminal until Ctrl-C', async () => {
    const ctrlC = new AbortController();
    const { exitCode } = await run(['estats', 'top', '--interval', '1ms'], {
      tty: true,
      interrupted: ctrlC.signal,
      onStdout: (soFar) => {
        if (soFar.split('\u001b[2J').length > 2) ctrlC.abort();
      },
    });
    expect(exitCode).toBe(0);
  });

  it('hist shows quantiles and a picture of one stage, or .hgrm', async () => {
    const [document] = await json<Array<{ summary: { count: number } }>>('hist', '-e', CLIENT, '--op', 'RDMA_WRITE');
    expect(document.summary.count).toBe(WRITES);
    expect(await text('hist', '-e', CLIENT, '--op', 'RDMA_WRITE', '--stage', 't4_t3')).toMatch(/30 samples: min .*#/s);
    expect(await text('hist', '-e', CLIENT, '--hgrm')).toMatch(/Value +Percentile TotalCount/);
    expect(await text('hist', '-e', SERVER)).toMatch(/no samples/);
  });

  it('dump shows what was dumped, and dumps when asked', async () => {
    // A busy machine may have made a WRITE so slow that it was dumped.
    const [before] = await json<Array<{ dumps: Dump[] }>>('dump', '-e', CLIENT);
    const shown = await text('dump', '--now', '-e', CLIENT);
    expect(shown).toMatch(/state "RTS"/);
    expect(shown).toMatch(/-> {2}psn 0x[0-9a-f]{6} {2}RDMA_WRITE_ONLY/);
    const [{ dumps }] = await json<Array<{ dumps: Dump[] }>>('dump', '-e', CLIENT);
    expect(dumps).toHaveLength(before.dumps.length + 1);
    expect(dumps.at(-1)?.reason).toBe('asked');
    expect(await text('dump', '-e', SERVER)).toMatch(/0 dumps\n {2}no work request was slow/);
  });

  it('diagnose names an owner for each connection and operation', async () => {
    const found = await json<Array<{ address: string; connections: Array<{ op: string; owner: string }> }>>('diagnose');
    const client = found.find(({ address }) => address === CLIENT);
    expect(client?.connections.map(({ op }) => op).sort()).toEqual(['RDMA_READ', 'RDMA_WRITE']);
    expect(await text('diagnose', '-e', CLIENT)).toMatch(/ owns it: /);
    expect(await text('diagnose', '-e', SERVER)).toMatch(/no work request/);
  });

  it('reaches an endpoint by process number, address, socket and URL', async () => {
    const [, { telemetry }] = devices;
    for (const which of [CLIENT, telemetry!.socketPath, telemetry!.httpUrl!]) {
      const snapshots = (await json<unknown[]>('top', '-e', which)).map(parseWatched);
      expect(snapshots.map(({ address }) => address)).toEqual([CLIENT]);
    }
    expect(await json<unknown[]>('top', '-e', String(process.pid))).toHaveLength(2);
    expect(await text('diagnose', '-e', CLIENT, '--peer', telemetry!.httpUrl!)).toMatch(/owns it/);
  });

  it('exits with 3 when nobody answers, and says who does', async () => {
    const { exitCode, stdout, stderr } = await run(['estats', 'top', '-e', '192.0.2.9']);
    expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: '' });
    expect(stderr).toContain(`${process.pid} on ${CLIENT}`);
    expect((await run(['estats', 'top', '-e', path.join(runtime, 'none.sock')])).exitCode).toBe(3);
  });

  it('exits with 2 for a stage that does not exist', async () => {
    const { exitCode, stderr } = await run(['estats', 'hist', '--stage', 't7_t6']);
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/It is one of t2_t1, t3_t2/);
  });
});

describe('openDevice', () => {
  it('with telemetry at an impossible address opens nothing', async () => {
    await expect(openDevice({ address: '127.57.1.3', estats: { http: 'nowhere' } })).rejects.toMatchObject({
      code: 'ERR_ROCE_MALFORMED',
    });
    await expect(
      openDevice({
        address: '127.57.1.3',
        estats: { http: `${CLIENT}:${new URL(devices[1].telemetry!.httpUrl!).port}` },
      }),
    ).rejects.toMatchObject({
      code: 'ERR_ROCE_IO',
    });
    await (await openDevice({ address: '127.57.1.3' })).close();
  });

  it('without telemetry has none', async () => {
    const device = await openDevice({ address: '127.57.1.3' });
    expect(device.telemetry).toBeUndefined();
    await device.close();
  });
});
