/**
 * The package as built. A worker engine's thread is a file that Node must be able to load, which a TypeScript source is not, so tests of
 * that engine use the build (`npm test` makes it) and its classes throughout.
 */

import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { isBuilt } from '../e2e/executable.js';

type Api = typeof import('../../src/index.js');

/** By Node itself: the test runner would replace the transport that a package imports by its sources. */
function built<T>(entry: string): T {
  return createRequire(import.meta.url)(resolve(entry)) as T;
}

/** Only call it where {@link isBuilt}. */
export async function builtApi(): Promise<Api> {
  return built('dist/index.js');
}

/** `rocev2/storage` as built. */
export async function builtStorage(): Promise<typeof import('../../src/storage-rpc/index.js')> {
  return built('dist/storage.js');
}

/** `@rocev2/rpc` as built. */
export async function builtRpc(): Promise<typeof import('../../packages/rpc/src/index.js')> {
  return built('packages/rpc/dist/index.js');
}

/** `@rocev2/kv` as built. */
export async function builtKv(): Promise<typeof import('../../packages/kv/src/index.js')> {
  return built('packages/kv/dist/index.js');
}

/** `@rocev2/primitives` as built. */
export async function builtPrimitives(): Promise<typeof import('../../packages/primitives/src/index.js')> {
  return built('packages/primitives/dist/index.js');
}

export { isBuilt };
