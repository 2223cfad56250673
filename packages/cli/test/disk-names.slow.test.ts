/** `rocev2 disk serve` with named disks, and the commands that list and change them while it runs. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { StorageClient } from '../../../src/storage-rpc/live/storage-client.js';
import type { DiskDocument } from '../../../src/verbs/estats/disk-document.js';
import { documentOf } from '../../../test/support/documents.js';
import { freePort } from '../../../test/support/free-port.js';
import { RuntimeFolder } from '../../../test/support/runtime-folder.js';
import { findPrograms } from '../../command/src/programs/program-client.js';
import { type CliResult, run } from './run-in-process.js';

const HOST = '127.0.1.31';

let folder: RuntimeFolder;
let stop: AbortController;
let serving: Promise<CliResult> | undefined;
let port: number;
beforeEach(async () => {
  folder = await RuntimeFolder.take('names');
  stop = new AbortController();
  port = await freePort();
});
afterEach(async () => {
  stop.abort();
  await serving;
  serving = undefined;
  await folder[Symbol.asyncDispose]();
});

/** Resolves when the server serves. */
async function serve(...args: string[]): Promise<void> {
  const at = ['--bind', HOST, '-p', `${port}`, '--udp-port', '0', '--engine', 'inline', '--json'];
  await new Promise<void>((resolve, reject) => {
    const onStderr = (soFar: string) => void (soFar.includes('Ctrl-C ends it') && resolve());
    serving = run(['disk', 'serve', ...at, ...args], { interrupted: stop.signal, onStderr });
    void serving.then(({ stderr }) => reject(new Error(stderr)));
  });
}

async function disk(...args: string[]): Promise<CliResult> {
  return run(['disk', ...args]);
}

const client = (name: string, access: 'write' | 'read' = 'write') =>
  StorageClient.connect({ host: HOST, port, disk: name, access, label: 'the client' });

const file = (name: string) => join(folder.path, name);

test('disks are made, enlarged, listed and taken away while they are served, and the file follows', async () => {
  const config = file('disks.json');
  await writeFile(config, JSON.stringify({ disks: [{ name: 'a', backend: `file:${file('a')}`, size: '256KiB' }] }));
  await serve('--config', config, '--disk', 'rom=memory,size=1MiB,read-only');

  const a = await client('a');
  await a.disk.write(4096, Buffer.alloc(4096, 1));
  const rom = await client('rom');
  expect(rom.disk.readOnly).toBe(true);
  await rom.close();
  await expect(client('a')).rejects.toThrow(/in use by the client/);
  await expect(client('b')).rejects.toThrow(/no disk 'b'/);

  const made = await disk('create', `b=file:${file('b')},size=1MiB`);
  expect(made).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("made 'b'") });
  const b = await client('b');
  await b.disk.write(0, Buffer.alloc(4096, 2));
  await b.close();

  // Requests are under way while the disk grows.
  const writes = Array.from({ length: 32 }, (_, i) => a.disk.write(i * 8192, Buffer.alloc(4096, 3)));
  expect(await disk('resize', 'a', '1MiB')).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('1 MiB') });
  await Promise.all(writes);
  const reader = await client('a', 'read');
  expect(reader.disk.sizeBytes).toBe(1 << 20);
  const into = Buffer.alloc(4096);
  for (let i = 0; i < 32; i++) {
    await reader.disk.read(i * 8192, 4096, into);
    expect(into[0]).toBe(3);
  }
  await reader.close();
  const listed = await disk('ls');
  expect(listed.stdout).toMatch(/ a +1 MiB +file:.* written by the client /);
  expect(listed.stdout).toMatch(/ rom +1 MiB +memory +read-only /);
  const document = documentOf('disk-ls', (await disk('ls', '--json')).stdout);
  expect(document).toMatchObject({
    servers: [{ at: `${HOST}:${port}`, disks: [{ name: 'a' }, { name: 'rom' }, { name: 'b' }] }],
  });

  expect(await disk('rm', 'a')).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('the client writes to') });
  expect(await disk('rm', 'b')).toMatchObject({ exitCode: 0 });
  await expect(client('b')).rejects.toMatchObject({ code: 'ERR_ROCE_NOT_FOUND' });
  await a.close();

  const kept = JSON.parse(await readFile(config, 'utf8'));
  expect(kept.disks.map(({ name }: { name: string }) => name)).toEqual(['a', 'rom']);
  stop.abort();
  expect(await serving).toMatchObject({ exitCode: 0 });
  stop = new AbortController();
  await serve('--config', config);
  const again = await client('a');
  expect(again.disk.sizeBytes).toBe(1 << 20);
  await again.close();
});

test('what cannot be done is refused with a reason, and changes nothing', async () => {
  await serve('--disk', `a=file:${file('a')},size=1MiB`, '--disk', 'm=memory,size=1MiB');
  for (const [args, exitCode, words] of [
    [['create', 'a=memory,size=1MiB'], 2, "two disks have the name 'a'"],
    [['create', 'c=memory'], 2, 'needs a size'],
    [['create', `c=file:${file('none/c')},size=1MiB`], 1, 'cannot use'],
    [['resize', 'c', '2MiB'], 1, "there is no disk 'c'"],
    [['resize', 'm', '2MiB'], 1, 'only a disk in a file can grow'],
    [['resize', 'a', '512KiB'], 2, 'can only grow'],
    [['resize', 'a', '1234567'], 2, 'multiple of 512'],
    [['rm', 'c'], 1, "there is no disk 'c'"],
    [['ls', '--server', 'nowhere:1'], 0, ''],
    [['rm', 'a', '--server', 'nowhere:1'], 3, 'no storage server at nowhere:1'],
  ] as const) {
    const { exitCode: found, stderr } = await disk(...args);
    expect([found, stderr], args.join(' ')).toEqual([exitCode, expect.stringContaining(words)]);
  }
  const a = await client('a'); // It is as it was, also after it could not grow.
  await a.disk.write(0, Buffer.alloc(4096, 1));
  expect(a.disk.sizeBytes).toBe(1 << 20);
  expect(await disk('rm', 'a', '--force')).toMatchObject({ exitCode: 0 });
  const { servers } = documentOf('disk-ls', (await disk('ls', '--json')).stdout) as { servers: [{ disks: unknown[] }] };
  expect(servers[0].disks).toHaveLength(1);
  const closing = a.close();
  stop.abort();
  await closing;
});

test('where no server runs, the list is empty, and changes have nobody to turn to', async () => {
  expect(await disk('ls')).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('no storage server') });
  expect(await disk('create', 'a=memory,size=1MiB')).toMatchObject({ exitCode: 3 });
});

test('with --estats each disk answers for itself: made, used, enlarged, taken away', async () => {
  await serve('--estats', '--disk', `a=file:${file('a')},size=256KiB`, '--disk', 'b=memory,size=1MiB');
  const documents = async () =>
    (await findPrograms(1))
      .map(({ document }) => document)
      .filter((document): document is DiskDocument => document.kind === 'disk')
      .sort((x, y) => x.address.localeCompare(y.address));
  const writes = (document: DiskDocument) => document.ops.find(({ op }) => op === 'write')?.requests;

  const a = await client('a');
  await a.disk.write(0, Buffer.alloc(4096, 1));
  const [ofA, ofB] = await documents();
  expect(ofA).toMatchObject({ address: `${HOST}/a`, store: `file:${file('a')}`, connections: { rdma: 0, tcp: 1 } });
  expect(ofA.identity).toMatchObject({ name: 'a' });
  expect(ofA.file).toMatchObject({ damagedReads: 0, scrub: null });
  expect(ofB).toMatchObject({ address: `${HOST}/b`, connections: { rdma: 0, tcp: 0 } });
  expect([writes(ofA), writes(ofB)]).toEqual([1, 0]);
  await a.close();

  const at = ['--server', `${HOST}:${port}`];
  await disk('create', 'c=memory,size=1MiB', ...at);
  await disk('resize', 'a', '512KiB', ...at);
  await disk('rm', 'b', ...at);
  expect((await documents()).map(({ address, sizeBytes }) => [address, sizeBytes])).toEqual([
    [`${HOST}/a`, 512 << 10],
    [`${HOST}/c`, 1 << 20],
  ]);
});
