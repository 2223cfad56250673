import { open, rm, stat, writeFile } from 'node:fs/promises';
import { RoceError, whyUnwritable } from 'rocev2/internal/core';

export async function checkWritable(path: string | undefined): Promise<void> {
  if (path === undefined) return;
  const created = await open(path, 'wx').catch((cause) => (cause.code === 'EEXIST' ? undefined : refuse(path, cause)));
  if (created !== undefined) {
    await created.close();
    await rm(path);
    return;
  }
  await (await open(path, 'a').catch((cause) => refuse(path, cause))).close();
}

/** Throws ERR_ROCE_CONFLICT if both are the same file, also under different names. */
export async function checkWritableBeside(input: string, path: string | undefined): Promise<void> {
  if (path === undefined) return;
  const [from, to] = await Promise.all(
    [input, path].map((file) => stat(file, { bigint: true }).catch(() => undefined)),
  );
  if (from?.isFile() === true && to !== undefined && from.dev === to.dev && from.ino === to.ino) {
    throw new RoceError('ERR_ROCE_CONFLICT', `${path} is the file that is read`, 'name another file to write to');
  }
  await checkWritable(path);
}

export async function writeOutputFile(path: string, contents: string | Uint8Array): Promise<void> {
  await writeFile(path, contents).catch((cause) => refuse(path, cause));
}

function refuse(path: string, cause: NodeJS.ErrnoException): never {
  throw new RoceError('ERR_ROCE_IO', `cannot write ${path}: ${whyUnwritable(cause)}`, undefined, { cause });
}
