/**
 * Where endpoints leave their control sockets: a directory that only its owner can enter, so that only the same user's processes (and root)
 * reach them. A directory that is somebody else's, or open to others, is refused rather than repaired: somebody may have put it there.
 */

import { lstat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { RoceError } from '../../core/errors.js';
import { makeFolder } from '../../driver/make-folder.js';

const OWNER_ONLY = 0o700;

/** `$XDG_RUNTIME_DIR/rocev2`, or a directory with the user's number in the directory for temporary files. */
export function controlDirectoryPath(): string {
  const runtime = process.env['XDG_RUNTIME_DIR'];
  if (runtime) return path.join(runtime, 'rocev2');
  return path.join(os.tmpdir(), `rocev2-${process.getuid?.() ?? 'user'}`);
}

/** Makes the directory if it is not there. Rejects with ERR_ROCE_IO when it cannot be made, or is not this user's alone. */
export async function openControlDirectory(directory: string): Promise<void> {
  await makeFolder(directory, OWNER_ONLY);
  await checkControlDirectory(directory);
}

/** Throws ERR_ROCE_IO when the directory is not this user's alone. */
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
