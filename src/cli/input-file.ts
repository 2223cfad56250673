/** Files that the command line names. One that cannot be read ends every command with exit code 1. */

import { readFile } from 'node:fs/promises';
import { RoceError } from '../core/errors.js';

/** The whole file. Throws ERR_ROCE_IO, which names the file and says why it cannot be read. */
export async function readInputFile(path: string): Promise<Buffer> {
  return await readFile(path).catch((cause: NodeJS.ErrnoException) => {
    throw new RoceError('ERR_ROCE_IO', `cannot read ${path}: ${whyUnreadable(cause)}`, undefined, { cause });
  });
}

/** The document in the file. Throws ERR_ROCE_IO, and ERR_ROCE_MALFORMED for what is not JSON. */
export async function readJsonFile(path: string): Promise<unknown> {
  const text = (await readInputFile(path)).toString('utf8');
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new RoceError('ERR_ROCE_MALFORMED', `${path} is not JSON: ${(cause as Error).message}`, undefined, { cause });
  }
}

/** Why the operating system refuses a file or folder. */
export function whyUnreadable(cause: NodeJS.ErrnoException): string {
  switch (cause.code) {
    case 'ENOENT':
      return 'there is no such file';
    case 'EISDIR':
      return 'it is a directory';
    case 'ENOTDIR':
      return 'it is not a directory';
    case 'EACCES':
      return 'permission denied';
    case 'ERR_FS_FILE_TOO_LARGE':
      return 'it is larger than 2 GiB (split it with: editcap -c 1000000 IN OUT)';
    default:
      return cause.message;
  }
}
