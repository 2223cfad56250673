/** Files named on the command line. A file that cannot be read ends every command with exit code 1. */

import { readFile } from 'node:fs/promises';
import { RoceError, whyUnreadable } from 'rocev2/internal/core';

/**
 * The whole file. Throws ERR_ROCE_IO, which names the file and says why it cannot be read; `whose` begins its message,
 * for what is no option of its own.
 */
export async function readInputFile(path: string, whose = ''): Promise<Buffer> {
  return await readFile(path).catch((cause: NodeJS.ErrnoException) => {
    throw new RoceError('ERR_ROCE_IO', `${whose}cannot read ${path}: ${whyUnreadable(cause)}`, undefined, { cause });
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
