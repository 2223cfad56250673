/** Files with secrets: permissions are checked on the opened file, so that it cannot be exchanged after the check. */

import { constants, type FileHandle, open } from 'node:fs/promises';
import process from 'node:process';
import { RoceError } from '../core/errors.js';
import { whyUnreadable } from '../core/file-errors.js';

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
const OF_GROUP_WRITE = 0o020;
const OF_OTHERS = 0o007;
const ROOT = 0;

export interface PrivateFileRules {
  /** Permissions that the file must not have. */
  readonly forbidden: number;
  /** Whether the file may belong to root and not to the user of this process. */
  readonly mayBeOfRoot: boolean;
}

/** Keys may be readable to a group, as those of nbdkit and QEMU are. */
const KEY_FILE: PrivateFileRules = { forbidden: OF_GROUP_WRITE | OF_OTHERS, mayBeOfRoot: true };

/** Opens a file without following a symbolic link, and without waiting for the other end of a pipe. */
export async function openPrivateFile(
  path: string,
  flags: number,
  mode: number,
  { forbidden, mayBeOfRoot }: PrivateFileRules,
): Promise<FileHandle> {
  if (process.platform === 'win32') return open(path, flags, mode);
  let file: FileHandle;
  try {
    file = await open(path, flags | O_NOFOLLOW | O_NONBLOCK, mode);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ELOOP') throw cause;
    throw new RoceError('ERR_ROCE_IO', `${path} is a symbolic link`, 'give the path of the file itself', { cause });
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new RoceError('ERR_ROCE_IO', `${path} is not a regular file`);
    const isOwn = stats.uid === process.geteuid?.() || (mayBeOfRoot && stats.uid === ROOT);
    if (!isOwn) {
      throw new RoceError('ERR_ROCE_IO', `${path} belongs to another user (${stats.uid})`, 'use your own file');
    }
    if ((stats.mode & forbidden) !== 0) {
      throw new RoceError('ERR_ROCE_IO', `other users have access to ${path}`, `chmod 600 ${path}`);
    }
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * Reads a file with keys. Rejects with ERR_ROCE_IO if it cannot be read, is a symbolic link, belongs neither to this
 * user nor to root, or if others may read it or a group may write it. `whose` begins the message.
 */
export async function readPrivateFile(path: string, whose = ''): Promise<Buffer> {
  try {
    await using file = await openPrivateFile(path, O_RDONLY, 0, KEY_FILE);
    return await file.readFile();
  } catch (cause) {
    if (cause instanceof RoceError) throw cause;
    throw new RoceError('ERR_ROCE_IO', `${whose}cannot read the keys in ${path}: ${whyUnreadable(cause)}`, undefined, {
      cause,
    });
  }
}
