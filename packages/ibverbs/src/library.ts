/**
 * Compiles the C library for the libibverbs that is installed: it has the same name, and every symbol of it, so that it
 * satisfies programs, `dlopen` and the libraries of hardware vendors. Symbols that are not implemented are refused.
 */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { RoceError } from 'rocev2/internal/core';
import { type DynamicSymbol, definedSymbols } from './elf.js';
import { makePrivateFolder } from './socket-folder.js';

const NAME = 'libibverbs.so.1';
const SOURCES = fileURLToPath(new URL('../native/', import.meta.url));
const FOLDERS: Partial<Record<string, readonly string[]>> = {
  x64: ['/lib/x86_64-linux-gnu', '/usr/lib/x86_64-linux-gnu', '/lib64', '/usr/lib64', '/usr/lib'],
  arm64: ['/lib/aarch64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/lib64', '/usr/lib64', '/usr/lib'],
};
const FLAGS = ['-O2', '-shared', '-fPIC', '-fvisibility=hidden', '-pthread', `-Wl,-soname,${NAME}`];
const CACHE_HINT = 'give XDG_CACHE_HOME a folder that you can write, on a file system with space';
const RETURNS_POINTER = /create|alloc|open|reg_|import|_str$|path|get_device/;

/**
 * The library that replaces `installed`, from the cache or compiled now. Rejects with what to install if it cannot be
 * made.
 */
export async function shimLibrary(env: NodeJS.ProcessEnv, installed = installedLibrary()): Promise<string> {
  const symbols = definedSymbols(readFileSync(installed));
  const names = readdirSync(SOURCES).filter((name) => /\.[ch]$/.test(name));
  const sources = names.map((name) => readFileSync(path.join(SOURCES, name), 'utf8'));
  const stubs = stubsFor(symbols, implemented(sources.join('\n')));
  const script = versionScript(symbols);
  const parts = [process.arch, ...FLAGS, stubs, script, ...sources];
  const hash = createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 24);
  const cache = await cacheFolder(env);
  const library = path.join(cache, hash, NAME);
  if (existsSync(library)) return library;
  const work = await mkdir(cache, { recursive: true, mode: 0o700 })
    .then(() => mkdtemp(path.join(cache, 'build-')))
    .catch(cannotWrite);
  try {
    await Promise.all([
      writeFile(path.join(work, 'stubs.c'), stubs),
      writeFile(path.join(work, 'versions'), script),
    ]).catch(cannotWrite);
    const files = names.filter((name) => name.endsWith('.c')).map((name) => path.join(SOURCES, name));
    await compile([...FLAGS, '-Wl,--version-script=versions', '-o', NAME, 'stubs.c', ...files], work, env);
    // Another process may have made it first: both are the same.
    await rename(work, path.dirname(library)).catch((error) => {
      if (!existsSync(library)) throw error;
    });
    return library;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

function cannotWrite(cause: Error): never {
  throw new RoceError('ERR_ROCE_IO', `the library cannot be written: ${cause.message}`, CACHE_HINT, { cause });
}

function installedLibrary(): string {
  const folders = FOLDERS[process.arch];
  if (process.platform !== 'linux' || folders === undefined) {
    const here = `${process.platform} ${process.arch}`;
    throw new RoceError('ERR_ROCE_UNSUPPORTED', `verbs programs run on Linux x64 and arm64, this is ${here}`);
  }
  const found = folders.map((folder) => path.join(folder, NAME)).find((file) => existsSync(file));
  if (found !== undefined) return found;
  throw new RoceError('ERR_ROCE_NOT_FOUND', `${NAME} is not installed`, 'apt install libibverbs1');
}

async function cacheFolder(env: NodeJS.ProcessEnv): Promise<string> {
  const base = env['XDG_CACHE_HOME'] ?? path.join(homedir(), '.cache');
  if (isWritable(base)) return path.join(base, 'rocev2-verbs');
  // Other users can write here, and programs load the library.
  const folder = path.join(tmpdir(), `rocev2-verbs-${process.getuid?.()}`);
  await makePrivateFolder(folder);
  return folder;
}

function isWritable(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

async function compile(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Promise<void> {
  const compiler = env['CC'] ?? 'cc';
  try {
    await promisify(execFile)(compiler, args, { cwd });
  } catch (cause) {
    const { code, stderr } = cause as { code?: unknown; stderr?: string };
    const isMissing = code === 'ENOENT';
    const text = isMissing ? `there is no C compiler '${compiler}'` : `${compiler} failed: ${stderr ?? cause}`;
    if (/no space left|quota exceeded|read-only file system/i.test(text)) {
      throw new RoceError('ERR_ROCE_IO', text, CACHE_HINT, { cause });
    }
    const hint = isMissing ? 'apt install gcc libc6-dev, or set CC' : 'libc6-dev and linux-libc-dev must be installed';
    throw new RoceError('ERR_ROCE_UNSUPPORTED', text, hint, { cause });
  }
}

function implemented(source: string): Set<string> {
  return new Set([...source.matchAll(/^EXPORT .*?\b(\w+)\(/gm)].map(([, name]) => name));
}

/** C text of a function or a zeroed variable for each symbol that the library lacks. */
export function stubsFor(symbols: readonly DynamicSymbol[], known: ReadonlySet<string>): string {
  const stubs = symbols
    .filter(({ name }) => !known.has(name))
    .map(({ name, variableBytes }) => {
      if (variableBytes !== undefined) return `EXPORT char ${name}[${variableBytes}];`;
      return `EXPORT long ${name}(void) { return refuse(${RETURNS_POINTER.test(name) ? 0 : 'EOPNOTSUPP'}); }`;
    });
  return `#include <errno.h>
#define EXPORT __attribute__((visibility("default")))
static long refuse(long result) {
  errno = EOPNOTSUPP;
  return result;
}
${stubs.join('\n')}
`;
}

/** The version node of each symbol. The nodes need not depend on each other. */
export function versionScript(symbols: readonly DynamicSymbol[]): string {
  const nodes = new Map<string, string[]>();
  for (const { name, version } of symbols) nodes.set(version, [...(nodes.get(version) ?? []), name]);
  const texts = [...nodes].map(([version, names]) => `${version} { global: ${names.sort().join('; ')}; };\n`);
  return texts.sort().join('');
}
