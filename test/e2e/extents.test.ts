/** `rocev2 extents`: a cluster of processes, and the commands that use it. */

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openNvme } from '../../packages/nvme/src/live/open-nvme.js';
import { NbdDevice } from '../../src/storage-rpc/nbd/nbd-device.js';
import { openDevice } from '../../src/verbs/open-device.js';
import { documentOf } from '../support/documents.js';
import { eventually } from '../support/eventually.js';
import { childrenOf, isAlive, isBuilt, isLinux, Program } from './executable.js';

const LIMIT_MS = 180_000;
/** An NVMe target and its host. */
const TARGET = '127.55.9.1';
const HOST = '127.55.9.2';

/** A disk of a cluster with keys is a namespace over TCP and RDMA, and nothing without the keys. */
async function servesToNvmeHosts(disk: string, keys: string): Promise<void> {
  const serve = (backend: string) =>
    Program.rocev2('nvme', 'target', '--disk', backend, '--bind', TARGET, '-p', '4429');
  const refused = serve(disk);
  expect(await refused.ended()).not.toBe(0);
  expect(refused.stderr).toContain('packets have to be protected here');
  const target = serve(`${disk}?psk=${keys}`);
  try {
    await target.writes('stderr', /Ctrl-C ends it/);
    const place = { address: TARGET, port: 4429, nqn: 'nqn.2026-11.rocev2:disk' };
    const data = Buffer.alloc(1 << 20, 'over TCP and back over RDMA ');
    await using writer = await openNvme(place);
    await writer.write(4096, data);
    await using device = await openDevice({ address: HOST });
    await using reader = await openNvme({ ...place, device });
    const read = Buffer.alloc(data.length);
    await reader.read(4096, read.length, read);
    expect(read.equals(data)).toBe(true);
  } finally {
    target.kill('SIGINT');
  }
  expect(await target.ended(), target.stderr).toBe(0);
}

describe.runIf(isBuilt)('rocev2 extents', { timeout: LIMIT_MS }, () => {
  let folder: string;
  let up: Program;
  let manager: string;
  /** What a test that fails leaves running. */
  const programs: Program[] = [];

  /** Runs a command to its end. */
  async function ran(...args: string[]) {
    const program = Program.rocev2('extents', ...args);
    return { exitCode: await program.ended(), stdout: program.stdout, stderr: program.stderr };
  }
  const asked = (command: string, ...args: string[]) => ran(command, ...args, '--manager', manager);
  const status = async () => documentOf('extents-status', (await asked('status', '--json')).stdout);

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-extents-'));
    up = Program.rocev2('extents', 'up', '--dir', join(folder, 'c'), '--nodes', '4', '-p', '0', '--restart', '--json');
    await up.writes('stderr', /Ctrl-C ends it/);
    manager = /the manager is at (\S+),/.exec(up.stderr)![1];
  }, LIMIT_MS);
  afterAll(() => {
    for (const program of [up, ...programs]) program.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  it('appends a file and lines, lists and reads them, and deletes them', async () => {
    const text = Array.from({ length: 50 }, (_, k) => `line ${k}\n`).join('');
    const file = join(folder, 'lines.txt');
    writeFileSync(file, text);
    expect((await asked('append', 'log', file, '--lines')).stdout).toMatch(/^50 records, 390 B in /);
    const appended = documentOf('extents-append', (await asked('append', 'log', file, '--json')).stdout);
    expect(appended).toMatchObject({ stream: 'log', records: 1, bytes: 390, failovers: 0, resent: 0 });
    expect((await asked('read', 'log')).stdout).toBe(text + text);
    expect((await asked('read', 'log', '--from', '48', '-n', '2')).stdout).toBe('line 48\nline 49\n');
    const { records } = documentOf('extents-read', (await asked('read', 'log', '--from', '49', '--json')).stdout);
    expect(records).toMatchObject([
      { number: 49, base64: Buffer.from('line 49\n').toString('base64') },
      { number: 50 },
    ]);
    const { streams } = documentOf('extents-ls', (await asked('ls', '--json')).stdout);
    expect(streams).toMatchObject([{ stream: 'log', extents: 2 }]);
    expect((await asked('status')).stdout).toMatch(
      /extents: 0 open, 2 sealed \(0 coded\), 0 under-replicated, 0 unavailable/,
    );
    documentOf('extents-rm', (await asked('rm', 'log', '--json')).stdout);
    expect(await asked('read', 'log')).toMatchObject({ exitCode: 1, stderr: "rocev2: there is no stream 'log'\n" });
  });

  it('takes another node in, which ends by Ctrl-C', async () => {
    const dir = join(folder, 'another');
    const node = Program.rocev2('extents', 'node', '--dir', dir, '--join', manager, '--domain', 'rack', '--json');
    await node.writes('stderr', /node 5 of cluster .*\nCtrl-C ends it/s);
    expect((await status())['nodes']).toContainEqual(expect.objectContaining({ node: 5, domain: 'rack', state: 'up' }));
    node.kill('SIGINT');
    expect(await node.ended()).toBe(0);
    expect(documentOf('extents-node', node.stdout)).toMatchObject({ node: 5, replicas: 0 });
  });

  it('says what is wrong: no manager, another name, a folder in use, too few nodes', async () => {
    expect(await ran('ls', '--manager', '127.0.0.1:1')).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining('no manager answers at 127.0.0.1:1 (start one with'),
    });
    expect((await asked('append', 'a b', 'package.json')).stderr).toContain("'a b' is not a name of a stream");
    expect((await asked('append', 'x', join(folder, 'none'))).stderr).toMatch(
      /cannot read .*none: there is no such file/,
    );
    const deaf = await ran('node', '--dir', join(folder, 'deaf'), '--join', '192.0.2.1', '--bind', '127.0.0.1');
    expect(deaf).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('no other machine reaches a node at 127.0.0.1'),
    });
    if (isLinux) {
      const second = await ran('manager', '--dir', join(folder, 'c', 'manager'), '-p', '0');
      expect(second).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('another process uses the folder') });
    }
    mkdirSync(join(folder, 'photos'));
    writeFileSync(join(folder, 'photos', 'a.jpg'), '');
    const foreign = await ran('up', '--dir', join(folder, 'photos'), '-p', '0');
    expect(foreign).toMatchObject({
      stderr: expect.stringContaining("is not the folder of a cluster: it has 'a.jpg'"),
    });
    expect(foreign.exitCode).not.toBe(0);
    const [, port] = /:(\d+)$/.exec(manager)!;
    const occupied = await ran('up', '--dir', join(folder, 'no', 'port'), '-p', port);
    expect(occupied).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/cannot listen on .*choose another port/),
    });
    expect(existsSync(join(folder, 'no'))).toBe(false);
    const three = ['up', '--dir', join(folder, 'three'), '-p', '0', '--managers', '3'];
    expect((await ran(...three)).stderr).toMatch(/3 managers keep their metadata in etcd.*\(add --metadata etcd:/);
    const away = await ran(...three, '--metadata', 'etcd:http://127.0.0.1:1');
    expect(away).toMatchObject({ exitCode: 3, stderr: expect.stringContaining('manager 1: etcd does not answer at') });
    expect((await asked('disk', 'snapshot', 'none', 'copy')).stderr).toBe("rocev2: there is no disk 'none'\n");
    const lonely = Program.rocev2('extents', 'manager', '--dir', join(folder, 'lonely'), '-p', '0', '--json');
    const [, address] = await lonely.writes('stderr', /listening on (\S+)\nCtrl-C ends it/);
    const short = await ran('append', 'x', 'package.json', '--manager', address);
    expect(short).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('an extent needs 3 nodes') });
    expect((await ran('status', '--manager', address)).stdout).toContain(
      '\n0 nodes take data, and 3 are needed: appends wait\n',
    );
    lonely.kill('SIGINT');
    expect(await lonely.ended()).toBe(0);
    expect(documentOf('extents-manager', lonely.stdout)).toMatchObject({ address });
  });

  it.runIf(isLinux)('gives a stream back after Ctrl-C, and says how to have one that has an owner', async () => {
    const text = /belongs to rocev2 extents append, process \d+ on .* \(a lease ends 30 s .*--take-over/;
    const append = Program.rocev2('extents', 'append', 'kept', '/dev/zero', '--record', '1KiB', '--manager', manager);
    await eventually(async () => {
      const { streams } = documentOf('extents-ls', (await asked('ls', '--json')).stdout);
      return (streams as { stream: string; owner?: string }[]).some(({ stream, owner }) => stream === 'kept' && owner);
    });
    expect(await asked('append', 'kept', 'package.json')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(text),
    });
    append.kill('SIGINT');
    expect(await append.ended(), append.stderr).toBe(0);
    expect((await asked('append', 'kept', 'package.json')).stdout).toMatch(/^1 record, /);
  });

  it.runIf(isLinux)(
    'has a disk whose gateway follows it to another server, when the one that had it is killed',
    async () => {
      const addresses = ['127.55.9.3', '127.55.9.4'];
      expect((await asked('disk', 'create', 'moving', '--size', '64MiB')).exitCode).toBe(0);
      const serve = async (address: string) => {
        const backend = `stream:moving@${manager}?take-over`;
        const program = Program.rocev2('disk', 'serve', '--backend', backend, '--bind', address, '-p', '18533');
        programs.push(program);
        await program.writes('stderr', /Ctrl-C ends it/);
        return program;
      };
      const first = await serve(addresses[0]);
      const meet = ['--connect', addresses.join(), '-p', '18533', '--bind', '127.55.9.5'];
      const gateway = Program.rocev2('disk', 'nbd', ...meet, '--listen', `unix:${join(folder, 'moving')}`);
      programs.push(gateway);
      const [, uri] = await gateway.writes('stderr', / at (nbd\S+)\n/);
      const nbd = await NbdDevice.open(uri);
      const data = (k: number) => Buffer.alloc(64 << 10, k);
      await nbd.write(0, data(1));
      first.kill('SIGKILL');
      await first.ended();
      const write = nbd.write(data(1).length, data(2)); // Nobody has the disk now.
      await serve(addresses[1]);
      await write;
      const read = Buffer.alloc(128 << 10);
      await nbd.read(0, read.length, read);
      expect(read.equals(Buffer.concat([data(1), data(2)]))).toBe(true);
      await nbd.close();
      gateway.kill('SIGINT');
      expect(await gateway.ended(), gateway.stderr).toBe(0);
    },
  );

  it.runIf(isLinux)(
    'has a disk whose gateway asks the manager for it, and follows it while its owner lives',
    async () => {
      expect((await asked('disk', 'create', 'followed', '--size', '64MiB')).exitCode).toBe(0);
      const disk = `stream:followed@${manager}`;
      const gateway = Program.rocev2(
        ...['disk', 'nbd', '--connect', disk, '--bind', '127.55.9.8', '--listen', `unix:${join(folder, 'followed')}`],
      );
      programs.push(gateway);
      await gateway.writes('stderr', /waiting for somebody to serve 'followed': nobody owns it now/);
      const serve = async (backend: string, address: string, ...more: string[]) => {
        const program = Program.rocev2(
          'disk',
          'serve',
          '--backend',
          backend,
          '--bind',
          address,
          '-p',
          '18534',
          ...more,
        );
        programs.push(program);
        await program.writes('stderr', /Ctrl-C ends it/);
        return program;
      };
      const first = await serve(disk, '127.55.9.6', '--advertise', '127.55.9.6');
      const [, uri] = await gateway.writes('stderr', / at (nbd\S+)\n/);
      expect((await asked('status')).stdout).toContain(', at 127.55.9.6:18534');
      const nbd = await NbdDevice.open(uri);
      const size = 64 << 10;
      const data = (k: number) => Buffer.alloc(size, `piece ${k} `);
      let written = 0;
      /** Writes and reads until something has happened. */
      const until = async (happened: Promise<unknown>) => {
        let isDone = false;
        const done = happened.finally(() => {
          isDone = true;
        });
        while (!isDone && written < 1000) {
          await nbd.write(written * size, data(written));
          const read = Buffer.alloc(size);
          await nbd.read(written * size, size, read);
          expect(read.equals(data(written))).toBe(true);
          written++;
        }
        await done;
      };
      const taking = serve(`${disk}?take-over`, '127.55.9.7');
      await until(taking.then(() => first.writes('stderr', /waiting until it has no owner/)));
      const second = await taking;
      second.kill('SIGINT');
      await until(second.ended().then(() => first.writes('stderr', /the disk 'followed' is ours again/)));
      expect(await second.ended(), second.stderr).toBe(0);
      for (let k = 0; k < written; k++) {
        const read = Buffer.alloc(size);
        await nbd.read(k * size, size, read);
        expect(read.equals(data(k)), `piece ${k} of ${written}`).toBe(true);
      }
      await nbd.close();
      gateway.kill('SIGINT');
      expect(await gateway.ended(), gateway.stderr).toBe(0);
      first.kill('SIGINT');
      expect(await first.ended(), first.stderr).toBe(0);
    },
  );

  it.runIf(isLinux)('ends at once by Ctrl-C while it starts, and leaves nobody', async () => {
    const starting = Program.rocev2('extents', 'up', '--dir', join(folder, 'starting'), '--nodes', '32', '-p', '0');
    await starting.writes('stderr', /node 1 is at/);
    const children = childrenOf(starting.process.pid!);
    starting.kill('SIGINT');
    expect(await starting.ended()).toBe(130);
    expect(starting.stderr).not.toContain('node 32 is at');
    await eventually(() => children.filter(isAlive).length === 0);
  });

  it.runIf(isLinux)('starts a node anew that was killed, and ends all its processes by Ctrl-C', async () => {
    await eventually(() => childrenOf(up.process.pid!).length === 5);
    const children = childrenOf(up.process.pid!);
    process.kill(Number(/^node 3 .* process (\d+)$/m.exec(up.stderr)![1]), 'SIGKILL');
    await up.writes('stderr', /the process of node3 was ended by SIGKILL\n\S+ info node 3 is at /);
    const all = [...new Set([...children, ...childrenOf(up.process.pid!)])];
    up.kill('SIGINT');
    expect(await up.ended()).toBe(0);
    expect(documentOf('extents-up', up.stdout)).toMatchObject({ nodes: 4, deaths: 1 });
    expect(all.filter(isAlive)).toEqual([]);
  });

  it('with keys serves who has them and nobody else', async () => {
    const keys = join(folder, 'keys.psk');
    writeFileSync(keys, `alice:${'5a'.repeat(32)}\n`, { mode: 0o600 });
    const dir = join(folder, 'protected');
    const cluster = Program.rocev2('extents', 'up', '--dir', dir, '--nodes', '3', '-p', '0', '--psk', keys);
    try {
      await cluster.writes('stderr', /Ctrl-C ends it/);
      const [, place] = /the manager is at (\S+),/.exec(cluster.stderr)!;
      const [line] = await cluster.writes('stdout', /rocev2 extents status .*/);
      expect(line).toBe(`rocev2 extents status --manager ${place} --psk ${keys}`);
      const own = ['--manager', place, '--psk', keys];
      expect((await ran('append', 'log', 'package.json', ...own)).stdout).toMatch(/^1 records?, /);
      expect((await ran('read', 'log', ...own)).stdout).toBe(readFileSync('package.json', 'utf8'));
      const plain = await ran('ls', '--manager', place);
      expect(plain).toMatchObject({ stdout: '', stderr: expect.stringContaining('packets have to be protected here') });
      expect(plain.exitCode).not.toBe(0);
      expect(await ran('disk', 'create', 'vol', '--size', '64MiB', ...own)).toMatchObject({ exitCode: 0 });
      await servesToNvmeHosts(`stream:vol@${place}`, keys);
    } finally {
      cluster.kill('SIGINT');
      await cluster.ended();
    }
  });
});
