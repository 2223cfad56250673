/**
 * Extension modules: ES modules that register rate controls and recovery schemes when they are loaded. Registries belong to a thread, so each
 * thread and process that needs the schemes loads the modules: the worker engine, and child processes, those of who starts them.
 */

import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { pathToFileURL } from 'node:url';
import { RoceError } from '../core/errors.js';

const loads = new Map<string, Promise<void>>();

/**
 * Loads each module once, in order. An entry is a URL, the text of one (`file:///...`), or an absolute path. Rejects with ERR_ROCE_MALFORMED for
 * an entry of another form, ERR_ROCE_NOT_FOUND for a module that is not there, ERR_ROCE_INVALID_ARGUMENT for one that throws while it is
 * loaded.
 */
export async function loadExtensions(modules: ReadonlyArray<string | URL>): Promise<void> {
  for (const module of modules) {
    const href = moduleHref('extension', module);
    if (!loads.has(href)) loads.set(href, load(href));
    await loads.get(href);
  }
}

/** URLs of the modules that this thread has loaded, for threads and processes that it starts. */
export function loadedExtensions(): readonly string[] {
  return [...loads.keys()];
}

/** The URL of a module that a program names by a URL or an absolute path; `what` it is, for the error. Throws ERR_ROCE_MALFORMED for anything else. */
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
    loads.delete(href); // The next attempt finds what may have been mended.
    if (error instanceof RoceError && error.code === 'ERR_ROCE_NOT_FOUND') throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `extension ${href} cannot be loaded: ${why}`, undefined, {
      cause: error,
    });
  }
}
