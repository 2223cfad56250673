/**
 * Node's `mkdir` with `recursive` never returns if a file system rejects new folders with ENOENT, as Linux does
 * in /proc: it makes the existing parent and tries again, indefinitely (seen with Node 20).
 */

import { mkdir, rmdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { RoceError } from '../core/errors.js';
import { whyUnwritable } from '../core/file-errors.js';

/** Resolves with those that are new, the outermost first. */
export async function makeFolder(folder: string, mode = 0o777): Promise<readonly string[]> {
  const made: string[] = [];
  try {
    await make(path.resolve(folder), mode, made);
    return made;
  } catch (cause) {
    await removeIfEmpty(made);
    throw unusableFolder(folder, cause);
  }
}

export async function removeIfEmpty(made: readonly string[]): Promise<void> {
  for (const folder of [...made].reverse()) await rmdir(folder).catch(() => {});
}

export function unusableFolder(folder: string, cause: unknown): RoceError {
  return new RoceError('ERR_ROCE_IO', `cannot use the folder ${folder}: ${whyUnwritable(cause)}`, undefined, { cause });
}

async function make(folder: string, mode: number, made: string[]): Promise<void> {
  if (await isThere(folder)) return;
  const parent = path.dirname(folder);
  if (parent !== folder) await make(parent, mode, made); // The root of a drive may be missing, and is its own parent.
  try {
    await mkdir(folder, { mode });
    made.push(folder);
  } catch (cause) {
    if (await isThere(folder)) return; // Another process came first.
    if (codeOf(cause) === 'ENOENT') throw new Error(`no folder can be made in ${parent}`, { cause });
    throw cause;
  }
}

async function isThere(folder: string): Promise<boolean> {
  try {
    if ((await stat(folder)).isDirectory()) return true;
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return false;
    throw cause;
  }
  throw Object.assign(new Error(`${folder} is a file`), { code: 'ENOTDIR' });
}

function codeOf(cause: unknown): string | undefined {
  return (cause as NodeJS.ErrnoException).code;
}
