/** Files that a command writes at its end. */

import { open } from 'node:fs/promises';
import { RoceError } from '../core/errors.js';

/** Asked before the work whose result goes there: throws ERR_ROCE_IO when the file cannot be written. What it holds stays. */
export async function checkWritable(path: string | undefined): Promise<void> {
  if (path === undefined) return;
  try {
    await (await open(path, 'a')).close();
  } catch (cause) {
    throw new RoceError('ERR_ROCE_IO', `cannot write ${path}: ${(cause as Error).message}`, undefined, { cause });
  }
}
