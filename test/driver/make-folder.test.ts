/** A folder and those above it; where there can be none, an error and no endless wait. */

import { existsSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeFolder, removeIfEmpty } from '../../src/driver/make-folder.js';

describe('a folder is made', () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'rocev2-folder-'));
  });
  afterEach(() => rm(root, { recursive: true }));

  it('with those above it, once or again, by an absolute path or another', async () => {
    for (const path of [join(root, 'a', 'b', 'c'), relative('.', join(root, 'd', 'e'))]) {
      await makeFolder(path);
      await makeFolder(path);
      expect(statSync(path).isDirectory()).toBe(true);
    }
  });

  it('and taken back, as far as it is new and empty', async () => {
    await mkdir(join(root, 'old'));
    const made = await makeFolder(join(root, 'old', 'a', 'b'));
    expect(made).toEqual([join(root, 'old', 'a'), join(root, 'old', 'a', 'b')]);
    await writeFile(join(root, 'old', 'a', 'file'), '');
    await removeIfEmpty(made);
    expect(existsSync(join(root, 'old', 'a', 'file'))).toBe(true);
    expect(existsSync(join(root, 'old', 'a', 'b'))).toBe(false);
    expect(await makeFolder(join(root, 'old'))).toEqual([]);
    await expect(makeFolder(join(root, 'new', 'x'.repeat(300)))).rejects.toThrow('cannot use the folder');
    expect(existsSync(join(root, 'new'))).toBe(false);
  });

  it('by several at a time', async () => {
    await Promise.all(Array.from({ length: 8 }, (_, k) => makeFolder(join(root, 'a', 'b', `c${k % 2}`))));
    expect(existsSync(join(root, 'a', 'b', 'c1'))).toBe(true);
  });

  it('for its owner alone', async () => {
    await makeFolder(join(root, 'own'), 0o700);
    if (process.platform !== 'win32') expect(statSync(join(root, 'own')).mode & 0o777).toBe(0o700);
  });

  it('unless a link to one is there', async () => {
    await mkdir(join(root, 'real'));
    await symlink(join(root, 'real'), join(root, 'link'));
    await makeFolder(join(root, 'link', 'a'));
    expect(existsSync(join(root, 'real', 'a'))).toBe(true);
  });

  it('and not where a file is', async () => {
    const file = join(root, 'file');
    await writeFile(file, '');
    for (const path of [file, join(file, 'a'), join(file, 'a', 'b')])
      await expect(makeFolder(path)).rejects.toThrow(`cannot use the folder ${path}: it is not a directory`);
  });

  it('and not behind a link that leads nowhere', async () => {
    await symlink(join(root, 'nowhere'), join(root, 'link'));
    await expect(makeFolder(join(root, 'link'))).rejects.toThrow(/cannot use the folder .*link/);
  });

  // Node's mkdir with `recursive` does not return here.
  it.runIf(existsSync('/proc/self'))('and not in /proc, which says so at once', async () => {
    await expect(makeFolder('/proc/none')).rejects.toThrow(
      'cannot use the folder /proc/none: no folder can be made in /proc',
    );
    await expect(makeFolder('/proc/none/a/b')).rejects.toThrow('/proc/none/a/b: no folder can be made in /proc');
  });
});
