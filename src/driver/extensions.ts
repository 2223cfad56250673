/**
 * Registries belong to a thread, so each thread and process that needs the schemes loads the modules: the worker
 * engine, and child processes those of their parent.
 */

import { existsSync } from 'node:fs';
import { createRequire, register } from 'node:module';
import { isAbsolute } from 'node:path';
import { pathToFileURL } from 'node:url';
import { RoceError } from '../core/errors.js';

const loads = new Map<string, Promise<void>>();

/** An entry is a URL, the text of one (`file:///...`), or an absolute path. */
export async function loadExtensions(modules: ReadonlyArray<string | URL>): Promise<void> {
  for (const module of modules) {
    const href = moduleHref('extension', module);
    if (!loads.has(href)) loads.set(href, load(href));
    await loads.get(href);
  }
}

export function loadedExtensions(): readonly string[] {
  return [...loads.keys()];
}

export function moduleHref(what: string, module: unknown): string {
  if (module instanceof URL) return module.href;
  if (typeof module === 'string') {
    if (isAbsolute(module)) return pathToFileURL(module).href;
    if (URL.canParse(module)) return module;
  }
  throw new RoceError(
    'ERR_ROCE_MALFORMED',
    `${what} '${String(module)}' is neither a URL nor an absolute path`,
    "new URL('./my-module.js', import.meta.url)",
  );
}

/** Resolves the packages of this project as this file does, where an extension cannot. */
const RESOLVE_HOOK = `let parentURL;
export const initialize = (url) => { parentURL = url; };
export async function resolve(specifier, context, next) {
  try {
    return await next(specifier, context);
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND' || !/^(@rocev2\\/|rocev2(\\/|$))/.test(specifier)) throw error;
    return next(specifier, { ...context, parentURL });
  }
}`;

let isHooked = false;

/** So that a single file in any folder can be an extension. */
function resolveOwnPackagesFor(href: string): void {
  if (isHooked || !href.startsWith('file:')) return;
  try {
    createRequire(href).resolve('rocev2/package.json');
  } catch {
    isHooked = true;
    register(`data:text/javascript,${encodeURIComponent(RESOLVE_HOOK)}`, { data: import.meta.url });
  }
}

async function load(href: string): Promise<void> {
  try {
    if (href.startsWith('file:') && !existsSync(new URL(href))) {
      throw new RoceError('ERR_ROCE_NOT_FOUND', `there is no extension ${href}`);
    }
    resolveOwnPackagesFor(href);
    await import(href);
  } catch (error) {
    loads.delete(href);
    if (error instanceof RoceError && error.code === 'ERR_ROCE_NOT_FOUND') throw error;
    const [why] = (error instanceof Error ? error.message : String(error)).split('\n');
    throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `extension ${href} cannot be loaded: ${why}`, undefined, {
      cause: error,
    });
  }
}
