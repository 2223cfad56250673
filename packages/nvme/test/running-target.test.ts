import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { freePort } from '../../../test/support/free-port.js';
import { type CliResult, run } from '../../cli/test/run-in-process.js';
import { askForChange, openControl } from '../src/commands/control.js';
import { openNvme } from '../src/live/open-nvme.js';

describe('a running target', () => {
  const address = '127.0.2.22';
  const nqn = 'nqn.2026-11.rocev2:disk';
  let folder: string;
  let control: string;
  let port: number;
  let interrupt: AbortController;
  let target: Promise<CliResult>;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-nvme-'));
    control = join(folder, 'control.sock');
    port = await freePort();
    interrupt = new AbortController();
    await new Promise<void>((ready) => {
      const args = ['--disk', 'memory', '--size', '1MiB', '--bind', address, '--transport', 'tcp', '-p', `${port}`];
      const faults = ['--fault', 'opcode=write:status=0x280,dnr:every=2', '--control', control];
      target = run(['nvme', 'target', '--json', ...args, ...faults], {
        interrupted: interrupt.signal,
        onStderr: (soFar) => void (soFar.includes('Ctrl-C') && ready()),
      });
    });
  });
  afterEach(async () => {
    interrupt.abort();
    await target;
    rmSync(folder, { recursive: true });
  });

  const change = (...words: string[]) => run(['nvme', words[0], control, ...words.slice(1)]);
  const list = async () => {
    const { stdout } = await run(['nvme', 'list', address, '-p', `${port}`, '--nqn', nqn, '--json']);
    return JSON.parse(stdout).namespaces.map(({ nsid, sizeBytes }: Record<string, number>) => [nsid, sizeBytes]);
  };

  test('gets namespaces, loses them, and grows them, with their data', async () => {
    const disk = await openNvme({ address, port, nqn });
    await disk.write(0, Buffer.alloc(4096, 5));
    expect(await change('resize', 'disk', '1', '2MiB')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await change('add', 'memory', '4MiB')).toMatchObject({ exitCode: 0 });
    expect(await list()).toEqual([
      [1, 2 << 20],
      [2, 4 << 20],
    ]);
    const read = Buffer.alloc(4096);
    await disk.read(0, 4096, read);
    expect(read[4095]).toBe(5);
    await disk.close();
    expect((await change('remove', 'disk', '2')).stdout).toContain('no longer has namespace 2');
    expect(await list()).toEqual([[1, 2 << 20]]);
  });

  test.each([
    [['resize', 'disk', '1', '1KiB'], 'cannot shrink'],
    [['resize', 'disk', '9', '2MiB'], 'no namespace 9'],
    [['remove', 'other', '1'], 'no subsystem'],
    [['add', 'disk=memory'], 'needs a size'],
    [['ana', 'rdma', address, 'optimized'], 'no rdma port'],
  ])('refuses %j, and goes on as before', async (words, reason) => {
    const { exitCode, stderr } = await change(...words);
    expect(stderr).toContain(reason);
    expect(exitCode).toBe(1);
    expect(await list()).toEqual([[1, 1 << 20]]);
  });

  test('tells hosts that a port is not to be used', async () => {
    await using disk = await openNvme({ address, port, nqn });
    const read = () => disk.read(0, 512, Buffer.alloc(512));
    await read();
    expect(await change('ana', 'tcp', address, 'inaccessible')).toMatchObject({ exitCode: 0 });
    await expect(read()).rejects.toThrow('ana inaccessible');
    await change('ana', 'tcp', address, 'optimized');
    await read();
  });

  test('fails commands by rule, and says how many', async () => {
    await using disk = await openNvme({ address, port, nqn });
    await disk.write(0, Buffer.alloc(512));
    await expect(disk.write(0, Buffer.alloc(512))).rejects.toThrow('write fault');
    interrupt.abort();
    const { faults } = JSON.parse((await target).stdout);
    expect(faults).toEqual([{ rule: 'opcode=write:status=0x280,dnr:every=2', struck: 1 }]);
  });

  test('is not disturbed by what is no change', async () => {
    for (const text of ['\n', '{}\n', '[1]\n', `["${'x'.repeat(9000)}`]) {
      const socket = createConnection(control);
      socket.on('error', () => {});
      socket.write(text);
      socket.resume();
      await new Promise((closed) => socket.once('close', closed));
    }
    expect(await list()).toEqual([[1, 1 << 20]]);
  });
});

describe('a control socket', () => {
  let folder: string;
  let control: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-nvme-'));
    control = join(folder, 'control.sock');
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const open = () => openControl(control, async () => 'done');

  test('that a killed target left behind is taken over', async () => {
    const leave =
      "require('node:net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))";
    spawnSync(process.execPath, ['-e', leave, control]);
    expect(existsSync(control)).toBe(true);
    await using _listening = await open();
    expect(await askForChange(control, ['any'])).toBe('done');
  });

  test('that a target listens at, and a file that is none, stay as they are', async () => {
    const first = await open();
    await expect(open()).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
    expect(await askForChange(control, ['any'])).toBe('done');
    await first[Symbol.asyncDispose]();
    writeFileSync(control, 'mine');
    await expect(open()).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
    expect(readFileSync(control, 'utf8')).toBe('mine');
  });
});

test('a change where no target listens has the exit code of that', async () => {
  expect(await run(['nvme', 'remove', '/tmp/rocev2-nowhere.sock', 'disk', '1'])).toMatchObject({
    exitCode: 3,
  });
});
