/**
 * Servers whose data is on a file system that is mounted read-only: each says so in a line and ends with 1, and nothing
 * is lost.
 */

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isBuilt, MAIN, Program } from './executable.js';

const SERVER = '127.0.6.61';
/** A user that may mount a file system of their own. */
const mayMount = spawnSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()]).status === 0;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-read-only-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Arguments of servers whose data is in `store`. */
const SERVERS: Readonly<Record<string, (store: string) => string[]>> = {
  'disk serve': (store) => ['disk', 'serve', '--backend', `file:${store}`, '--size', '1MiB', '--bind', SERVER],
  'disk nbd': (store) => ['disk', 'nbd', '--backend', `file:${store}`, '--size', '1MiB', '--listen', `${SERVER}:18661`],
  'nvme target': (store) => ['nvme', 'target', '--disk', `file:${store}`, '--size', '1MiB', '--bind', SERVER],
  'kv serve': (store) => ['kv', 'serve', '--snapshot', store, '--bind', SERVER],
  'extents manager': (store) => ['extents', 'manager', '--dir', store, '--bind', SERVER, '-p', '18662'],
  'extents up': (store) => ['extents', 'up', '--dir', store, '--bind', SERVER, '-p', '18663', '--nodes', '3'],
};

async function served(args: readonly string[]): Promise<void> {
  const server = Program.rocev2(...args);
  try {
    await server.writes('stderr', /Ctrl-C/);
  } finally {
    server.kill('SIGINT');
  }
  expect(await server.ended(), server.stderr).toBe(0);
}

function onReadOnly(args: readonly string[]) {
  const script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"';
  const command = ['sh', '-c', script, folder, process.execPath, resolve(MAIN), ...args];
  const { status, stderr } = spawnSync('unshare', ['-rm', ...command], { encoding: 'utf8', timeout: 60_000 });
  return { status, stderr };
}

describe.runIf(isBuilt && mayMount)('on a file system that is mounted read-only', () => {
  it.each(Object.keys(SERVERS))(
    '%s says so, for new and for existing data, which is whole afterwards',
    async (name) => {
      const store = join(folder, name.replaceAll(' ', '-'));
      const args = SERVERS[name](store);
      const refused = { status: 1, stderr: expect.stringMatching(/^rocev2: .*the file system is read-only.*\n$/) };
      expect(onReadOnly(args)).toEqual(refused);
      await served(args);
      const files = readdirSync(folder).sort();
      expect(onReadOnly(args)).toEqual(refused);
      expect(readdirSync(folder).sort()).toEqual(files);
      await served(args);
    },
  );

  it.each([
    ['nvme target', ['nvme', 'target', '--disk', 'memory', '--size', '1MiB', '--bind', SERVER, '--reservations']],
  ])('%s refuses a file for reservations there', (_, args) => {
    const path = join(folder, 'reservations.json');
    const refused = { status: 1, stderr: expect.stringMatching(/^rocev2: .*the file system is read-only.*\n$/) };
    expect(onReadOnly([...args, path])).toEqual(refused);
    writeFileSync(path, '{"version":1,"namespaces":{}}');
    expect(onReadOnly([...args, path])).toEqual(refused);
  });

  it('a program that only reads is not refused', () => {
    mkdirSync(join(folder, 'empty'), { recursive: true });
    expect(onReadOnly(['sim', 'list'])).toMatchObject({ status: 0, stderr: '' });
  });
});
