/** Files that a command writes at its end. Both functions throw ERR_ROCE_IO, with the file's name, when it cannot be written. */

import { open, writeFile } from 'node:fs/promises';
import { RoceError } from '../core/errors.js';
import { whyUnreadable } from './input-file.js';

/** Asked before the work whose result goes there. What the file holds stays. */
export async function checkWritable(path: string | undefined): Promise<void> {
  if (path !== undefined) await (await open(path, 'a').catch((cause) => refuse(path, cause))).close();
}

/** Writes the whole file, over what was there. */
export async function writeOutputFile(path: string, text: string): Promise<void> {
  await writeFile(path, text).catch((cause) => refuse(path, cause));
}

/** Why the operating system refuses to write a file. */
function whyUnwritable(cause: NodeJS.ErrnoException): string {
  return cause.code === 'ENOENT' ? 'there is no such folder' : whyUnreadable(cause);
}

function refuse(path: string, cause: NodeJS.ErrnoException): never {
  throw new RoceError('ERR_ROCE_IO', `cannot write ${path}: ${whyUnwritable(cause)}`, undefined, { cause });
}
