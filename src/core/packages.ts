/**
 * Optional packages, loaded on first use by `require`, which bundlers do not follow; without them the caller reports
 * what it cannot do.
 */

import { createRequire } from 'node:module';
import { RoceError } from './errors.js';

/**
 * CommonJS bundles know their file by `__filename` only; ES modules do not have that name, except under `node -e`,
 * where it is a global with the value `[eval]`.
 */
export const CODE_FILE: string =
  typeof __filename === 'string' && !__filename.startsWith('[') ? __filename : import.meta.url;

export function requirePackage<T>(name: string): T {
  try {
    return createRequire(CODE_FILE)(name) as T;
  } catch (cause) {
    throw new RoceError(
      'ERR_ROCE_UNSUPPORTED',
      `the package ${name} cannot be loaded: ${(cause as Error).message.split('\n')[0]}`,
      'install it where this program can find it; bundles leave it out: docs/how-to/deploy.md',
      { cause },
    );
  }
}

export function nativeFileOf(name: string): string | undefined {
  const loaded = Object.keys(createRequire(CODE_FILE).cache);
  return loaded.find((path) => path.includes(name) && path.endsWith('.node'));
}
