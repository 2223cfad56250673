import { constants } from 'node:fs/promises';
import { RoceError } from '../core/errors.js';
import { whyUnwritable } from '../core/file-errors.js';
import { openPrivateFile } from './private-file.js';

const MODE = 0o600;
const OF_OTHERS = 0o077;
const { O_APPEND, O_CREAT, O_WRONLY } = constants;

/**
 * Rejects with ERR_ROCE_IO for a file that cannot be written, is a symbolic link, belongs to another user, or that
 * others may read or write.
 */
export async function appendToKeyLog(path: string, lines: string): Promise<void> {
  try {
    const rules = { forbidden: OF_OTHERS, mayBeOfRoot: false };
    await using file = await openPrivateFile(path, O_APPEND | O_CREAT | O_WRONLY, MODE, rules);
    await file.appendFile(lines);
  } catch (cause) {
    if (cause instanceof RoceError) throw cause;
    throw new RoceError('ERR_ROCE_IO', `cannot write the key log ${path}: ${whyUnwritable(cause)}`, undefined, {
      cause,
    });
  }
}
