/**
 * Packages that are loaded on their first use, and that a program may lack: native ones, and large ones that few programs need. They are loaded
 * by `require`, which bundlers do not follow, so that they stay outside a bundle; without them the caller says what it cannot do.
 */

import { createRequire } from 'node:module';
import { RoceError } from './errors.js';

/**
 * The file that this code runs from, as a path or a `file:` URL: this module, or the bundle that contains it. CommonJS bundles know their file
 * by `__filename` only; ES modules do not have that name, except under `node -e`, where it is a global and says `[eval]`.
 */
export const CODE_FILE: string =
  typeof __filename === 'string' && !__filename.startsWith('[') ? __filename : import.meta.url;

/** The exports of an installed package, searched from {@link CODE_FILE}. Throws ERR_ROCE_UNSUPPORTED where there is none, or it does not work. */
export function requirePackage<T>(name: string): T {
  try {
    return createRequire(CODE_FILE)(name) as T;
  } catch (cause) {
    throw new RoceError(
      'ERR_ROCE_UNSUPPORTED',
      `the package ${name} cannot be loaded: ${(cause as Error).message.split('\n')[0]}`,
      'install it where this program can find it; bundles leave it out: docs/packaging.md',
      { cause },
    );
  }
}

/** The machine code of a package that this thread has loaded: the path of its `.node` file. Undefined when it has none. */
export function nativeFileOf(name: string): string | undefined {
  const loaded = Object.keys(createRequire(CODE_FILE).cache);
  return loaded.find((path) => path.includes(name) && path.endsWith('.node'));
}
