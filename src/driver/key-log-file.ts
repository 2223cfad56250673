import { constants, open } from 'node:fs/promises';
import { RoceError } from '../core/errors.js';
import { whyUnwritable } from '../core/file-errors.js';

const MODE = 0o600;
const OF_OTHERS = 0o077;
const { O_APPEND, O_CREAT, O_WRONLY } = constants;

/** Rejects with ERR_ROCE_IO for a file that cannot be written, or that others may read or write. */
export async function appendToKeyLog(path: string, lines: string): Promise<void> {
  let file: Awaited<ReturnType<typeof open>> | undefined;
  try {
    file = await open(path, O_APPEND | O_CREAT | O_WRONLY, MODE);
    const stats = await file.stat();
    if (stats.isFile() && (stats.mode & OF_OTHERS) !== 0 && process.platform !== 'win32') {
      throw new RoceError('ERR_ROCE_IO', `others have access to the key log ${path}`, `chmod 600 ${path}`);
    }
    await file.appendFile(lines);
  } catch (cause) {
    if (cause instanceof RoceError) throw cause;
    throw new RoceError('ERR_ROCE_IO', `cannot write the key log ${path}: ${whyUnwritable(cause)}`, undefined, {
      cause,
    });
  } finally {
    await file?.close();
  }
}
