/** Files named on the command line. A file that cannot be read ends every command with exit code 1. */

import { readFile } from 'node:fs/promises';
import { RoceError, whyUnreadable } from 'rocev2/internal/core';

export async function readInputFile(path: string, whose = ''): Promise<Buffer> {
  return await readFile(path).catch((cause: NodeJS.ErrnoException) => {
    throw new RoceError('ERR_ROCE_IO', `${whose}cannot read ${path}: ${whyUnreadable(cause)}`, undefined, { cause });
  });
}

export async function readJsonFile(path: string): Promise<unknown> {
  const text = (await readInputFile(path)).toString('utf8');
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new RoceError('ERR_ROCE_MALFORMED', `${path} is not JSON: ${(cause as Error).message}`, undefined, { cause });
  }
}
