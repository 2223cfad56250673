/** Folders of this machine: one process at a time, and metadata that a second manager cannot touch. */

import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SYSTEM_CLOCK } from '../../../src/driver/system-clock.js';
import { HAS_KOFFI } from '../../../test/support/has-koffi.js';
import { FolderFiles } from '../src/live/folder-files.js';
import { LogMetadata } from '../src/log-metadata.js';

describe('a folder', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'rocev2-folder-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it.runIf(HAS_KOFFI)('belongs to one manager until that one ends, and keeps what it has written', async () => {
    const files = await FolderFiles.open(folder);
    const metadata = await LogMetadata.open(files, SYSTEM_CLOCK);
    await metadata.commit({ compare: [], put: [{ key: 'a', value: '1' }] });
    if (process.platform === 'linux')
      await expect(FolderFiles.open(folder)).rejects.toThrow(/another process uses the folder/);
    await metadata.close();
    await files.close();
    await using again = await FolderFiles.open(folder);
    const next = await LogMetadata.open(again, SYSTEM_CLOCK);
    expect((await next.get('a'))?.value).toBe('1');
    await next.close();
  });

  it('that was made and is empty goes with its user, and another one stays', async () => {
    const path = join(folder, 'a', 'b');
    await (await FolderFiles.open(path)).close();
    expect(existsSync(join(folder, 'a'))).toBe(false);
    const files = await FolderFiles.open(path);
    await (await files.create('x')).close();
    await files.close();
    expect(existsSync(join(path, 'x'))).toBe(true);
    await (await FolderFiles.open(folder)).close();
    expect(existsSync(folder)).toBe(true);
  });

  it('that is full says so by its name, and other errors keep their words', async () => {
    await using files = await FolderFiles.open(folder);
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), {
      code: 'ENOSPC',
      syscall: 'write',
    });
    await expect(files.named(Promise.reject(full))).rejects.toThrow(
      `cannot use the folder ${folder}: the disk is full`,
    );
    await expect(files.named(Promise.reject(new Error('mine')))).rejects.toThrow(/^mine$/);
    expect(await files.named(Promise.resolve(7))).toBe(7);
  });

  it('that is a file is refused in words', async () => {
    await writeFile(join(folder, 'file'), '');
    await expect(FolderFiles.open(join(folder, 'file', 'x'))).rejects.toThrow(
      /cannot use the folder .*: it is not a directory/,
    );
    await expect(FolderFiles.open(join(folder, 'file'))).rejects.toThrow(/file: it is not a directory/);
  });
});
