// @ts-check
/**
 * Builds HPCC's ns-3 simulator without waf, which needs Python 2: node bench/ns3/build.js CHECKOUT OUT [--jobs 2]
 *
 * CHECKOUT is the folder `simulation` of alibaba-edu/High-Precision-Congestion-Control; it is not changed. OUT gets the
 * headers, the object files and the program `third`. A second call compiles only what is missing. The lists of sources are
 * those of the wscript files. As the optimized profile of waf: -O3, without assertions and logs.
 */

import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import process from 'node:process';
import { parseArgs, promisify } from 'node:util';

const run = promisify(execFile);
const FOLDERS = ['model', 'helper', 'utils'];
/** Modules that scratch/third.cc needs, and which of their sources. */
const MODULES = {
  'point-to-point': /./,
  core: /^(?!.*(win32|cairo|realtime|wall-clock-synchronizer|unix-fd-reader|int64x64-double))/,
  network: /./,
  applications: /rdma-client/,
  mpi: /mpi-interface|mpi-receiver/,
  bridge: /model/,
  internet: /^(?!.*nsc-)/,
};
/** What `waf configure` finds on Linux. */
const CONFIG = [
  'INT64X64_USE_128',
  'HAVE___UINT128_T',
  ...'STDINT_H INTTYPES_H SYS_TYPES_H SYS_STAT_H DIRENT_H STDLIB_H GETENV SIGNAL_H PTHREAD_H'
    .split(' ')
    .map((name) => `HAVE_${name}`),
];
/** The code is of 2013 and relies on headers that others included, and on objects that are compared with null. */
const FLAGS = [
  '-O3',
  '-DNDEBUG',
  '-std=gnu++11',
  '-w',
  '-fpermissive',
  '-fno-strict-aliasing',
  '-fno-delete-null-pointer-checks',
  '-pthread',
];
const STANDARD_HEADERS = [
  'cstdint',
  'cstdio',
  'cstdlib',
  'cstring',
  'limits',
  'memory',
  'algorithm',
  'functional',
  'iostream',
  'fstream',
  'sstream',
  'map',
  'set',
  'unistd.h',
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { jobs: { type: 'string', default: '2' } },
});
if (positionals.length !== 2) throw new Error('usage: node bench/ns3/build.js CHECKOUT OUT [--jobs 2]');
const [checkout, out] = positionals.map((path) => resolve(path));
const jobs = Number(values.jobs);
if (!(jobs >= 1)) throw new Error('--jobs is at least 1');

const include = join(out, 'include');
mkdirSync(join(include, 'ns3'), { recursive: true });
mkdirSync(join(out, 'objects'), { recursive: true });

/** The names of files with `ending` that a wscript lists. @param {string} module @param {string} ending */
function listed(module, ending) {
  const lines = readFileSync(join(checkout, 'src', module, 'wscript'), 'utf8').split('\n');
  const names = lines.flatMap((line) => /^\s*'((?:model|helper|utils)\/[\w.-]+)'/.exec(line)?.[1] ?? []);
  return [...new Set(names)].filter((name) => name.endsWith(ending));
}

/** @param {string} path @param {string} text */
function write(path, text) {
  if (!existsSync(path) || readFileSync(path, 'utf8') !== text) writeFileSync(path, text);
}

const headers = readdirSync(join(checkout, 'src')).flatMap((module) =>
  FOLDERS.map((folder) => join(checkout, 'src', module, folder))
    .filter((folder) => existsSync(folder))
    .flatMap((folder) =>
      readdirSync(folder)
        .filter((name) => name.endsWith('.h'))
        .map((name) => join(folder, name)),
    ),
);
for (const header of headers) {
  const link = join(include, 'ns3', basename(header));
  if (!existsSync(link)) symlinkSync(header, link);
}
write(join(include, 'ns3', 'core-config.h'), `${CONFIG.map((name) => `#define ${name} 1`).join('\n')}\n`);
for (const module of Object.keys(MODULES)) {
  const usable = listed(module, '.h').filter((name) => !/cairo|double|nsc-/.test(name));
  write(
    join(include, 'ns3', `${module}-module.h`),
    `${usable.map((name) => `#include "ns3/${basename(name)}"`).join('\n')}\n`,
  );
}
const common = join(include, 'common.h');
write(common, `${STANDARD_HEADERS.map((name) => `#include <${name}>`).join('\n')}\n#include "ns3/core-module.h"\n`);

/** @param {readonly string[]} args */
const compile = (args) => run('g++', [...FLAGS, '-I', include, ...args], { maxBuffer: 2 ** 26 });
if (!existsSync(`${common}.gch`)) await compile(['-x', 'c++-header', common, '-o', `${common}.gch`]);

const sources = Object.entries(MODULES).flatMap(([module, wanted]) => {
  // The wscript of core names the 128-bit arithmetic inside a call.
  const names = [...listed(module, '.cc'), ...(module === 'core' ? ['model/int64x64-128.cc'] : [])].filter((name) =>
    wanted.test(name),
  );
  return names.map((name) => ({
    source: join(checkout, 'src', module, name),
    object: join(out, 'objects', `${module}-${basename(name, '.cc')}.o`),
  }));
});
sources.unshift({ source: join(checkout, 'scratch', 'third.cc'), object: join(out, 'objects', 'third.o') });

const waiting = sources.filter(({ object }) => !existsSync(object));
const total = waiting.length;
/** @type {string[]} */
const failures = [];
async function work() {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { source, object } = next;
    try {
      await compile(['-include', common, '-c', source, '-o', `${object}.part`]);
      renameSync(`${object}.part`, object);
      process.stderr.write(`${total - waiting.length}/${total} ${basename(source)}\n`);
    } catch (error) {
      failures.push(source);
      process.stderr.write(`${source}\n${/** @type {{ stderr?: string }} */ (error).stderr ?? error}\n`);
    }
  }
}
await Promise.all(Array.from({ length: jobs }, work));
if (failures.length > 0) throw new Error(`${failures.length} sources were not compiled: ${failures.join(', ')}`);
await run('g++', ['-O3', '-pthread', ...sources.map(({ object }) => object), '-o', join(out, 'third')]);
process.stdout.write(`${join(out, 'third')}\n`);
