/**
 * The directory of control sockets, accessible to its owner only. One that is foreign or open to others is refused
 * rather than repaired, because it may have been planted.
 */

import { lstat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { RoceError } from '../../core/errors.js';
import { makeFolder } from '../../driver/make-folder.js';

const OWNER_ONLY = 0o700;

export function controlDirectoryPath(): string {
  const runtime = process.env['XDG_RUNTIME_DIR'];
  if (runtime) return path.join(runtime, 'rocev2');
  return path.join(os.tmpdir(), `rocev2-${process.getuid?.() ?? 'user'}`);
}

export async function openControlDirectory(directory: string): Promise<void> {
  await makeFolder(directory, OWNER_ONLY);
  await checkControlDirectory(directory);
}

export async function checkControlDirectory(directory: string): Promise<void> {
  const { uid, mode, isDirectory } = await lstat(directory).then((stats) => ({
    uid: stats.uid,
    mode: stats.mode,
    isDirectory: stats.isDirectory(),
  }));
  const own = process.getuid?.() ?? uid;
  if (isDirectory && uid === own && (mode & 0o077) === 0) return;
  throw new RoceError(
    'ERR_ROCE_IO',
    `${directory} is not a directory of this user alone`,
    'remove it, or set XDG_RUNTIME_DIR to a directory of yours',
  );
}
