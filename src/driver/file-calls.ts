/**
 * File calls that Node lacks (space, locks), through koffi (optional; Linux only). Without them files are filled with
 * zeros, nothing is deallocated, and other processes are not locked out.
 */

import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { getSystemErrorName } from 'node:util';
import { requirePackage } from '../core/packages.js';

/** <sys/file.h>: LOCK_EX | LOCK_NB. */
const LOCK_NOW = 2 | 4;
/** <linux/falloc.h>: KEEP_SIZE | PUNCH_HOLE. */
const PUNCH_HOLE = 1 | 2;
/** <linux/falloc.h>: KEEP_SIZE | ZERO_RANGE. */
const ZERO_RANGE = 1 | 16;

type AsyncCall = { async(...args: unknown[]): void };

interface Calls {
  readonly posixFallocate: AsyncCall;
  readonly fallocate: AsyncCall;
  readonly flock: AsyncCall;
}

let loaded: Calls | 'absent' | undefined;

function calls(): Calls | undefined {
  loaded ??= load();
  return loaded === 'absent' ? undefined : loaded;
}

function load(): Calls | 'absent' {
  if (process.platform !== 'linux') return 'absent';
  try {
    const koffi = requirePackage<typeof import('koffi')>(`@koromix/koffi-linux-${process.arch}`);
    const lib = koffi.load(null);
    return {
      posixFallocate: lib.func('int posix_fallocate(int, int64_t, int64_t)'),
      fallocate: lib.func('int fallocate(int, int, int64_t, int64_t)'),
      flock: lib.func('int flock(int, int)'),
    };
  } catch {
    return 'absent';
  }
}

/** In a thread of Node's pool: these calls can take long. */
function inPool(call: AsyncCall, ...args: number[]): Promise<number> {
  return new Promise((resolve, reject) => {
    call.async(...args, (error: Error | null, result: number) => {
      if (error === null) resolve(result);
      else reject(error);
    });
  });
}

/** False if unsupported here. */
export async function reserve(fd: number, offset: number, lengthBytes: number): Promise<boolean> {
  const lib = calls();
  if (lib === undefined) return false;
  const errno = await inPool(lib.posixFallocate, fd, offset, lengthBytes);
  if (errno === 0) return true;
  const name = getSystemErrorName(-errno);
  if (name === 'EINVAL' || name === 'EOPNOTSUPP') return false;
  throw Object.assign(new Error(`${name}: ${lengthBytes} bytes cannot be reserved`), {
    code: name,
    syscall: 'fallocate',
  });
}

/** False if the file system cannot. */
export async function punchHole(fd: number, offset: number, lengthBytes: number): Promise<boolean> {
  const lib = calls();
  return lib !== undefined && (await inPool(lib.fallocate, fd, PUNCH_HOLE, offset, lengthBytes)) === 0;
}

/** False if the file system cannot. */
export async function zeroRange(fd: number, offset: number, lengthBytes: number): Promise<boolean> {
  const lib = calls();
  return lib !== undefined && (await inPool(lib.fallocate, fd, ZERO_RANGE, offset, lengthBytes)) === 0;
}

export async function lockFile(fd: number): Promise<boolean> {
  const lib = calls();
  return lib === undefined || (await inPool(lib.flock, fd, LOCK_NOW)) === 0;
}

/** Changes whenever the system and its page cache have restarted, or at each call if that is unknown. */
export async function systemLife(): Promise<bigint> {
  const bootId = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => randomBytes(8).toString('hex'));
  return BigInt(`0x${bootId.replaceAll('-', '').slice(0, 16)}`);
}
