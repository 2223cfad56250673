/**
 * Registries belong to a thread, so each thread and process that needs the schemes loads the modules: the worker
 * engine, and child processes those of their parent.
 */

import { existsSync } from 'node:fs';
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

async function load(href: string): Promise<void> {
  try {
    if (href.startsWith('file:') && !existsSync(new URL(href))) {
      throw new RoceError('ERR_ROCE_NOT_FOUND', `there is no extension ${href}`);
    }
    await import(href);
  } catch (error) {
    loads.delete(href);
    if (error instanceof RoceError && error.code === 'ERR_ROCE_NOT_FOUND') throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `extension ${href} cannot be loaded: ${why}`, undefined, {
      cause: error,
    });
  }
}
