/**
 * The package as built. A worker engine's thread is a file that Node must be able to load, which a TypeScript source is not, so tests of
 * that engine use the build (`npm test` makes it) and its classes throughout.
 */

import { pathToFileURL } from 'node:url';
import { isBuilt } from '../e2e/executable.js';

type Api = typeof import('../../src/index.js');

/** Only call it where {@link isBuilt}. */
export function builtApi(): Promise<Api> {
  const entry: string = pathToFileURL('dist/index.js').href;
  return import(entry) as Promise<Api>;
}

/** `rocev2/storage` as built. */
export function builtStorage(): Promise<typeof import('../../src/storage-rpc/index.js')> {
  return import(pathToFileURL('dist/storage.js').href);
}

/** `rocev2/rpc` as built. */
export function builtRpc(): Promise<typeof import('../../packages/rpc/src/index.js')> {
  return import(pathToFileURL('packages/rpc/dist/index.js').href);
}

/** `rocev2/kv` as built. */
export function builtKv(): Promise<typeof import('../../packages/kv/src/index.js')> {
  return import(pathToFileURL('packages/kv/dist/index.js').href);
}

/** `rocev2/primitives` as built. */
export function builtPrimitives(): Promise<typeof import('../../packages/primitives/src/index.js')> {
  return import(pathToFileURL('packages/primitives/dist/index.js').href);
}

export { isBuilt };
