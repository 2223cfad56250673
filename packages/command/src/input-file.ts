/**
 * Files named on the command line; `-` is standard input. A file that cannot be read ends every command with exit code
 * 1.
 */

import { createWriteStream } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { RoceError, whyUnreadable } from 'rocev2/internal/core';

const STANDARD_INPUT = '-';

/** For messages. */
export function inputName(path: string): string {
  return path === STANDARD_INPUT ? 'standard input' : path;
}

export async function readInputFile(path: string, whose = ''): Promise<Buffer> {
  const reading = path === STANDARD_INPUT ? buffer(process.stdin) : readFile(path);
  return await reading.catch((cause: NodeJS.ErrnoException) => {
    const text = `${whose}cannot read ${inputName(path)}: ${whyUnreadable(cause)}`;
    throw new RoceError('ERR_ROCE_IO', text, undefined, { cause });
  });
}

export async function readJsonFile(path: string): Promise<unknown> {
  const text = (await readInputFile(path)).toString('utf8');
  try {
    return JSON.parse(text);
  } catch (cause) {
    const what = `${inputName(path)} is not JSON: ${(cause as Error).message}`;
    throw new RoceError('ERR_ROCE_MALFORMED', what, undefined, { cause });
  }
}

/** A file that can be read several times: of standard input a copy, which ends with this object. */
export async function repeatableInput(path: string): Promise<{ readonly path: string } & AsyncDisposable> {
  if (path !== STANDARD_INPUT) return { path, [Symbol.asyncDispose]: async () => {} };
  const folder = await mkdtemp(join(tmpdir(), 'rocev2-input-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  const copy = join(folder, 'input');
  try {
    await pipeline(process.stdin, createWriteStream(copy));
  } catch (error) {
    await remove();
    throw error;
  }
  return { path: copy, [Symbol.asyncDispose]: remove };
}
