/** Files that a command writes at its end. Both functions throw ERR_ROCE_IO, with the file's name, if it cannot be written. */

import { open, writeFile } from 'node:fs/promises';
import { RoceError } from '../core/errors.js';
import { whyUnwritable } from '../core/file-errors.js';

/** Checks before the work that its result can be written. The contents of the file do not change. */
export async function checkWritable(path: string | undefined): Promise<void> {
  if (path !== undefined) await (await open(path, 'a').catch((cause) => refuse(path, cause))).close();
}

/** Writes the whole file, and replaces an existing one. */
export async function writeOutputFile(path: string, contents: string | Uint8Array): Promise<void> {
  await writeFile(path, contents).catch((cause) => refuse(path, cause));
}

function refuse(path: string, cause: NodeJS.ErrnoException): never {
  throw new RoceError('ERR_ROCE_IO', `cannot write ${path}: ${whyUnwritable(cause)}`, undefined, { cause });
}
